// Package retry paces the attempts of a request that may be sent again. It does not decide
// which errors are worth another attempt. [Awake] is for requests that may span a freeze.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Pause is the time between two attempts: half of a bound, and a random part of the other
// half. The first bound is First. Each further one is twice the previous one, up to Longest.
type Pause struct {
	First, Longest time.Duration // at least 2 ns

	most time.Duration
}

// Wait waits until the pause is over, and returns true. It returns false, and does not wait
// any longer, if ctx ends before that.
func (p *Pause) Wait(ctx context.Context) bool {
	p.most = min(max(2*p.most, p.First), p.Longest)
	d := p.most/2 + rand.N(p.most/2)
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
