package ratelimit

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A Budget decides how many attempts one decision makes, and how long each may
// take.
type Budget interface {
	// Next returns how long the next attempt may take; 0 means without a limit.
	// It returns false if there is no time for another attempt. If failed is
	// set, the last attempt failed, and Next pauses before it returns.
	Next(ctx context.Context, failed bool) (time.Duration, bool)
}

// oneAttempt is the budget for a store in memory: each request is sent once and
// has no time limit.
type oneAttempt struct{}

func (oneAttempt) Next(_ context.Context, failed bool) (time.Duration, bool) { return 0, !failed }

const (
	// A pause is random, between 0 and a bound. The bound begins with
	// firstPause and doubles up to longestPause: 25, 50, 100, 100 ms, ...
	firstPause   = 25 * time.Millisecond
	longestPause = 100 * time.Millisecond

	leastAttempt = 5 * time.Millisecond // no shorter attempt can succeed
)

// A pace is what a limiter remembers about its attempts for the next decision.
type pace struct {
	connected atomic.Bool // the last attempt was answered, so there is an open connection
}

// shares divides the time until a deadline into attempts. An attempt may take a
// third of the time left, so that two more can follow. If no connection is open
// yet, it may take half, because opening one takes longer than an answer.
//
// For example, with 900 ms, an open connection and attempts that all hang:
//
//	attempt  time left  may take
//	1        900 ms     300 ms
//	2        600 ms     200 ms
//	3        400 ms     133 ms
type shares struct {
	deadline time.Time
	pace     *pace
	attempts int
	pause    time.Duration // the bound of the last pause
	began    time.Time     // when the last attempt began
}

// Next implements Budget.
func (s *shares) Next(ctx context.Context, failed bool) (time.Duration, bool) {
	if failed {
		s.wait(ctx)
	}
	s.began = time.Now()
	left := s.deadline.Sub(s.began)
	if ctx.Err() != nil || left <= 0 {
		return 0, false
	}
	s.attempts++
	share := left / 2
	if s.pace.connected.Load() {
		share = left / 3
	}
	if share < leastAttempt { // a first attempt takes all the time left, others are not made
		return left, s.attempts == 1
	}
	return share, true
}

// wait pauses before another attempt. The pause counts from the start of the
// last attempt, so there is no pause after an attempt that hung. A pause takes
// at most a quarter of the time left.
func (s *shares) wait(ctx context.Context) {
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	now := time.Now()
	pause := min(rand.N(s.pause)-now.Sub(s.began), s.deadline.Sub(now)/4)
	if pause <= 0 {
		return
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
