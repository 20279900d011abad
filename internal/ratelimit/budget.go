package ratelimit

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A Budget gives one decision its attempts.
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
	firstPause   = 25 * time.Millisecond // at most, with full jitter; each pause doubles it
	longestPause = 100 * time.Millisecond
	leastAttempt = 5 * time.Millisecond // a shorter attempt has no chance
)

// pace is what a limiter remembers about attempts for the next decision.
type pace struct {
	connected atomic.Bool // the last attempt was answered, so there is an open connection
}

// shares divides the time until a deadline into attempts. An attempt may take a
// third of the time left, so that two more can follow. If no connection is open
// yet, it may take half, because opening one takes longer than an answer.
//
// For example, with 900 ms and an open connection: the first attempt may take
// 300 ms. If it hangs, 600 ms are left and the second may take 200 ms.
type shares struct {
	deadline time.Time
	pace     *pace
	attempts int
	pause    time.Duration // the longest that the last pause could be
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
	if share < leastAttempt { // only a first attempt may take all the time left
		return left, s.attempts == 1
	}
	return share, true
}

// wait pauses before an attempt. The pause counts from the start of the last
// attempt: one that hung has waited long enough. A pause takes at most a
// quarter of the time left.
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
