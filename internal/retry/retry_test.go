package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/retry"
)

// Each pause is half of its bound and a random part of the other half, and bounds double.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Pause)
		bound := 25 * time.Millisecond
		for i := range 20 {
			began := time.Now()
			if ok, took := p.Wait(t.Context()), time.Since(began); !ok || took < bound/2 || took > bound {
				t.Errorf("pause %d takes %v (%v), want %v to %v", i, took, ok, bound/2, bound)
			}
			bound = min(2*bound, 400*time.Millisecond)
		}
	})
}

// A pause that the context does not outlast is not begun.
func TestAPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer stop()
		p := &Pause{First: 25 * time.Millisecond, Longest: 400 * time.Millisecond}
		if ok, took := p.Wait(ctx), time.Since(began); ok || took != 0 {
			t.Errorf("before a deadline: %v after %v, want false at once", ok, took)
		}
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, leave)
		if ok, took := p.Wait(left), time.Since(began); ok || took != time.Millisecond {
			t.Errorf("the caller leaves: %v after %v, want false after 1ms", ok, took)
		}
	})
}

func TestBefore(t *testing.T) {
	end := time.Now().Add(time.Hour)
	lambda, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	ctx, cancel := Before(lambda, Margin)
	if got, _ := ctx.Deadline(); !got.Equal(end.Add(-100 * time.Millisecond)) {
		t.Errorf("the context ends at %v, want 100 ms before %v", got, end)
	}
	cancel()
	if ctx.Err() == nil || lambda.Err() != nil {
		t.Errorf("after cancel: %v and %v, want only the new context to end", ctx.Err(), lambda.Err())
	}
	ctx, cancel = Before(t.Context(), Margin)
	if end, ok := ctx.Deadline(); ok {
		t.Errorf("without a deadline, the context ends at %v", end)
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("cancel does not end the context")
	}
}
