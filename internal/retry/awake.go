package retry

import (
	"context"
	"time"
)

const (
	tick   = 25 * time.Millisecond
	frozen = 10 * tick // a tick that takes longer has seen a freeze, or a machine too busy to read an answer
)

// Awake returns a context that ends when this process has run for d. Lambda freezes an
// instance after it responds, and the clock goes on meanwhile. An answer that comes
// during the freeze waits in its socket, so a request that only reads can still use it.
// A write must not: it has to end by the clock as well.
//
// The time is counted in ticks of 25 ms, and a freeze counts as one tick at most. That
// tick is never the last one, so the process has a tick more to read an answer that came
// meanwhile.
func Awake(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for late := false; d > 0 || late; d -= tick {
			began := time.Now()
			select {
			case <-ticks.C:
				late = time.Since(began) > frozen
			case <-ctx.Done():
				return
			}
		}
		end(context.DeadlineExceeded)
	}()
	return ctx, func() { end(context.Canceled) }
}
