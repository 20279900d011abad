package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// attempts is one decision's dealings with a store. It sends again, with the
// same id, whatever may have failed, as often as its deadline allows, which is
// of the real clock.
type attempts struct {
	ctx      context.Context
	store    Store
	limiter  *Limiter
	cache    *Cache    // learns what the store answers; nil where nothing is to be learned
	deadline time.Time // zero: one attempt, without a timeout
	requests int       // sent so far
	unknown  int64     // actions of the last update that may have been performed without our knowing; 0: none
	last     view      // as the last attempt began
}

const (
	firstPause   = 25 * time.Millisecond // at most, with full jitter; it doubles
	longestPause = 100 * time.Millisecond
	leastAttempt = 5 * time.Millisecond // a shorter one has no chance
)

// errDeadline is an outage's cause where no attempt was made at all.
var errDeadline = errors.New("no time left for an attempt")

// attempts starts a decision's budget. The caller must call stop at its end.
func (l *Limiter) attempts(ctx context.Context) (a *attempts, stop context.CancelFunc) {
	a = &attempts{ctx: ctx, store: l.Store, limiter: l, cache: l.Cache}
	if l.Timeout == 0 {
		return a, func() {}
	}
	a.ctx, stop = context.WithTimeout(ctx, l.Timeout)
	a.deadline, _ = a.ctx.Deadline()
	return a, stop
}

// Update performs w, which counts n actions, or says why nobody knows whether
// it was.
func (a *attempts) Update(w Write, n int64) (item Item, done bool, err error) {
	err = a.try(w.Key, func(ctx context.Context) *StoreError {
		item, done, err = a.store.Update(ctx, w)
		failed := asStoreError(err)
		if failed != nil && failed.Failure == Unknown {
			a.unknown = n
		}
		return failed
	})
	if err == nil {
		a.cache.learn(w.Key, item, a.last, a.limiter.Clock())
	}
	return item, done, err
}

// Read reads the item under k.
func (a *attempts) Read(k Key) (item Item, err error) {
	err = a.try(k, func(ctx context.Context) *StoreError {
		item, err = a.store.Read(ctx, k)
		return asStoreError(err)
	})
	if err == nil {
		a.cache.learn(k, item, a.last, a.limiter.Clock())
	}
	return item, err
}

// Delete removes the item under k.
func (a *attempts) Delete(k Key) error {
	err := a.try(k, func(ctx context.Context) *StoreError { return asStoreError(a.store.Delete(ctx, k)) })
	if err == nil {
		a.cache.forget(k)
	}
	return err
}

// try sends until the store answers. An error is a *StoreError.
func (a *attempts) try(k Key, send func(context.Context) *StoreError) error {
	failed := &StoreError{Failure: Unknown, What: tooLate, Err: errDeadline}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		timeout, ok := a.timeout(began)
		if !ok {
			return failed
		}
		a.last = a.cache.look(k, a.limiter.Clock())
		if failed = a.once(timeout, send); failed == nil {
			return nil
		}
		if failed.Failure == Rejected || a.deadline.IsZero() {
			return failed
		}
		sleep(a.ctx, a.pause(pause, began))
	}
}

// pause is how long to wait before the next attempt: up to most, with full
// jitter. It counts from the start of the last one, which has waited if it
// hung, and leaves most of the time that is left to attempts.
func (a *attempts) pause(most time.Duration, began time.Time) time.Duration {
	now := time.Now()
	return min(rand.N(most)-now.Sub(began), a.deadline.Sub(now)/4)
}

// once makes one attempt within timeout; zero is without one.
func (a *attempts) once(timeout time.Duration, send func(context.Context) *StoreError) *StoreError {
	a.requests++
	if timeout == 0 {
		return send(a.ctx)
	}
	ctx, cancel := context.WithTimeout(a.ctx, timeout)
	defer cancel()
	failed := send(ctx)
	a.limiter.connected.Store(failed == nil || failed.Failure != Unknown)
	return failed
}

// timeout is a third of what is left, so that two more can follow, or half
// where a connection has to be made first, which takes longer than an answer.
// The first attempt takes all where that is little; false: too little is left
// for another.
func (a *attempts) timeout(now time.Time) (time.Duration, bool) {
	if a.deadline.IsZero() {
		return 0, true
	}
	left := a.deadline.Sub(now)
	if a.ctx.Err() != nil || left <= 0 {
		return 0, false
	}
	share := left / 2
	if a.limiter.connected.Load() {
		share = left / 3
	}
	if share < leastAttempt {
		return left, a.requests == 0
	}
	return share, true
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
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
