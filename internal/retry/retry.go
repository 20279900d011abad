// Package retry paces the attempts of a request that may be sent again. It does not decide
// which errors are worth another attempt. [Awake] is for requests that may span a freeze.
package retry

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// MaxTries is how often one request of a decision, or of a job, is sent if it fails each time.
const MaxTries = 6

// A Pause is the time between two attempts: half of a bound, and a random part of the other
// half. The first bound is First. Each further one is twice the previous one, up to Longest.
// The bounds of the zero Pause are 25, 50, 100, 200 and then 400 ms.
type Pause struct {
	First, Longest time.Duration // at least 2 ns; 0: 25 ms and 400 ms

	bound time.Duration
}

// Next returns how long the next pause is.
func (p *Pause) Next() time.Duration {
	first, longest := cmp.Or(p.First, 25*time.Millisecond), cmp.Or(p.Longest, 400*time.Millisecond)
	p.bound = min(max(2*p.bound, first), longest)
	return p.bound/2 + rand.N(p.bound/2)
}

// Wait waits until the next pause is over, and returns true. It returns false, and does not
// wait any longer, if ctx ends before that.
func (p *Pause) Wait(ctx context.Context) bool {
	d := p.Next()
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Margin is the time that a handler needs to write its answer. Lambda ends an
// invocation at its deadline, whether or not there is an answer by then. So a
// handler stops its own work a little earlier: of 3 s, it uses 2.9 s.
const Margin = 100 * time.Millisecond

// Before returns a context that ends margin before the deadline of ctx. Without
// a deadline it ends with ctx.
func Before(ctx context.Context, margin time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-margin))
}

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
