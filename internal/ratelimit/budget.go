package ratelimit

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A Budget gives one decision its attempts.
type Budget interface {
	// Next returns how long the next attempt may take; 0 is without a limit. Failed
	// says that the last attempt failed: Next then waits before it returns. It returns
	// false if there is no time for another attempt.
	Next(ctx context.Context, failed bool) (time.Duration, bool)
}

// oneAttempt is the budget for a store in memory: one attempt for each request,
// which takes as long as it takes.
type oneAttempt struct{}

func (oneAttempt) Next(_ context.Context, failed bool) (time.Duration, bool) { return 0, !failed }

const (
	firstPause   = 25 * time.Millisecond // at most, with full jitter; each one is twice as long
	longestPause = 100 * time.Millisecond
	leastAttempt = 5 * time.Millisecond // a shorter one has no chance
)

// pace is what a limiter remembers for the next decision.
type pace struct {
	connected atomic.Bool // the last attempt was answered, so there is an open connection
}

// shares divides the time until a deadline into attempts. An attempt takes a third of
// what is left, so that two more can follow. If no connection is open yet it takes half,
// because making one takes longer than an answer.
type shares struct {
	deadline time.Time
	pace     *pace
	attempts int
	pause    time.Duration // the longest next one
	began    time.Time     // the last attempt
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
	if share < leastAttempt { // only a first attempt takes all that is left
		return left, s.attempts == 1
	}
	return share, true
}

// wait pauses before an attempt. The pause counts from the start of the last attempt,
// which has waited already if it hung. It leaves most of the time to attempts.
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
