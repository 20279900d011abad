// Package retry paces the attempts of a request that may be sent again: how long
// each one may take, and how long to wait in between. It does not decide which
// errors are worth another attempt. [Awake] is for requests that may span a freeze.
//
// For example, a [Budget] of 900 ms and attempts that all hang:
//
//	attempt  time left  may take
//	1        900 ms     300 ms
//	2        600 ms     200 ms
//	3        400 ms     133 ms
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause   = 25 * time.Millisecond
	longestPause = 100 * time.Millisecond
	leastAttempt = 5 * time.Millisecond // no further attempt begins if its share is shorter
)

// A Budget divides the time until a deadline into attempts. It is used for one
// request and not by several goroutines.
type Budget struct {
	Deadline time.Time

	// Connected reports whether a connection is open. An attempt that must open
	// one gets half of the time that is left. Any other attempt gets a third, so
	// that two more can follow. Nil: it is open.
	Connected func() bool

	attempts int
	began    time.Time // the last attempt
	pause    Pause
}

// Next returns how long the next attempt may take. If failed is set, the last
// attempt failed, and Next waits before it returns. It returns false if there
// is no time for another attempt.
func (b *Budget) Next(ctx context.Context, failed bool) (time.Duration, bool) {
	if failed {
		// A pause counts from the start of the last attempt, which has waited already
		// if it hung. It leaves most of the time to attempts.
		now := time.Now()
		b.pause.First, b.pause.Longest = firstPause, longestPause
		wait(ctx, min(b.pause.next()-now.Sub(b.began), b.Deadline.Sub(now)/4))
	}
	b.began = time.Now()
	left := b.Deadline.Sub(b.began)
	if ctx.Err() != nil || left <= 0 {
		return 0, false
	}
	b.attempts++
	share := left / 3
	if b.Connected != nil && !b.Connected() {
		share = left / 2
	}
	if share < leastAttempt { // only a first attempt takes all that is left
		return left, b.attempts == 1
	}
	return share, true
}

// A Pause is the time between two attempts: a random part of a bound. The first
// bound is First. Each further one is twice the previous one, up to Longest.
type Pause struct {
	First, Longest time.Duration // positive

	most time.Duration
}

// Wait waits until the pause is over or ctx ends.
func (p *Pause) Wait(ctx context.Context) { wait(ctx, p.next()) }

func (p *Pause) next() time.Duration {
	p.most = min(max(2*p.most, p.First), p.Longest)
	return rand.N(p.most)
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
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
