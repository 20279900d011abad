package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/retry"
)

func TestAwakeEndsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{time.Millisecond, 25 * time.Millisecond, time.Second} {
			began := time.Now()
			ctx, stop := Awake(t.Context(), d)
			<-ctx.Done()
			if took := time.Since(began); took < d || took > d+25*time.Millisecond || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("a context of %v ended after %v: %v", d, took, context.Cause(ctx))
			}
			stop()
		}
	})
}

// Neither the goroutine nor the ticker outlives the context.
func TestAwakeEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, leave := context.WithCancel(t.Context())
		ctx, stop := Awake(parent, time.Hour)
		defer stop()
		leave()
		synctest.Wait()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("after its caller left: %v", ctx.Err())
		}
		ctx, stop = Awake(t.Context(), time.Hour)
		stop()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("after stop: %v", ctx.Err())
		}
	})
}
