package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A Limiter decides requests on a store. It is safe for concurrent use.
type Limiter struct {
	Store Store

	// Cache refuses again what the store refused within the last second, and
	// decides alone while the store can't be asked. Nil: every decision asks the
	// store, and an outage is a *StoreError.
	Cache *Cache

	// Timeout is how long one decision may take, all attempts included. Zero:
	// one attempt, which takes what it takes; for a store in memory.
	Timeout time.Duration

	// DenyOutage makes an outage an error, where Cache would decide.
	DenyOutage bool

	// Now is the clock that decisions count by. Nil: time.Now.
	Now func() time.Time

	connected atomic.Bool // the last attempt was answered: a connection stands
}

// Check counts r and decides. The error is a *StoreError, or says which field
// of r is out of range.
func (l *Limiter) Check(ctx context.Context, r Request) (Decision, error) {
	if r.ID == "" {
		return Decision{}, errors.New("request id is empty, want the id of the request")
	}
	if err := r.validate(); err != nil {
		return Decision{}, err
	}
	now := l.Clock()
	if d, ok := l.Cache.refuse(&r, now); ok {
		return d, nil
	}
	return l.askOrDecideAlone(ctx, func(a *attempts) (Decision, error) {
		return l.check(a, &r, now.UnixMilli())
	})
}

// check is the one loop: it plans from the last state seen or from nothing,
// and plans again from the item that a failed condition brought back.
func (l *Limiter) check(a *attempts, r *Request, now int64) (Decision, error) {
	place := r.Policy.Place(now)
	w := Write{Key: r.key(place), ID: NewID(r.ID), Now: now, Expires: place.Expires}
	limit, _ := r.Policy.Quota()
	n := min(r.Count, limit)
	plan := r.Policy.Plan(now, n)
	var ok bool
	if w.Update, ok = plan(l.Cache.hint(w.Key)); !ok {
		w.Update, _ = plan(nil)
	}
	for {
		item, done, err := a.Update(w, n)
		switch {
		case err != nil:
			return Decision{}, err
		case done:
			return r.counted(now, item.State, n), nil
		case item.Has(w.ID) && a.unknown > 0:
			// An id found after an attempt of unknown outcome is that attempt's.
			return r.counted(now, item.State, a.unknown), nil
		case item.Has(w.ID):
			return r.repeat(now, item.State), nil
		}
		if n, w.Update = r.fits(now, item.State); n == 0 {
			return r.decision(now, item.State, 0, Limited), nil
		}
	}
}

// Status decides r as Check would now, and counts nothing.
func (l *Limiter) Status(ctx context.Context, r Request) (Decision, error) {
	if err := r.validate(); err != nil {
		return Decision{}, err
	}
	now := l.Clock().UnixMilli()
	return l.askOrDecideAlone(ctx, func(a *attempts) (Decision, error) {
		item, err := a.Read(r.key(r.Policy.Place(now)))
		if err != nil {
			return Decision{}, err
		}
		if item.Has(NewID(r.ID)) {
			return r.repeat(now, item.State), nil
		}
		n, u := r.fits(now, item.State)
		d := r.decision(now, item.State, n, OK)
		if 0 < n && n < r.Count { // the wait begins where the grant leaves off
			d.Wait = r.Policy.Wait(now, 1, u.Apply(item.State))
		}
		return d, nil
	})
}

// Release gives back r.Count actions of the check r.ID, which was counted at
// r.At: once, and only while it still counts; else nothing changes. The error
// is a *StoreError, or says that r.Count is out of range.
func (l *Limiter) Release(ctx context.Context, r Request) (Decision, error) {
	if err := r.validate(); err != nil {
		return Decision{}, err
	}
	now := l.Clock().UnixMilli()
	if ahead := r.At - now; 0 < ahead && ahead <= clockSlack.Milliseconds() {
		now = r.At // counted by an instance whose clock is ahead
	}
	counted, current := r.key(r.Policy.Place(r.At)), r.key(r.Policy.Place(now))
	return l.ask(ctx, func(a *attempts) (Decision, error) {
		var item Item
		var err error
		if counted == current {
			defer l.Cache.doubt(counted)
			item, _, err = a.Update(Write{Key: counted, Update: r.Policy.Release(r.Count), ID: NewID(r.ID), Release: true, Now: now}, 0)
		} else {
			item, err = a.Read(current)
		}
		return r.decision(now, item.State, r.Count, OK), err
	})
}

// Reset forgets what is counted of r's activity in the current window. The
// error is a *StoreError.
func (l *Limiter) Reset(ctx context.Context, r Request) (Decision, error) {
	now := l.Clock().UnixMilli()
	key := r.key(r.Policy.Place(now))
	return l.ask(ctx, func(a *attempts) (Decision, error) {
		defer l.Cache.doubt(key)
		return r.decision(now, nil, r.Count, OK), a.Delete(key)
	})
}

// ask has the store decide.
func (l *Limiter) ask(ctx context.Context, decide func(*attempts) (Decision, error)) (Decision, error) {
	a, stop := l.attempts(ctx)
	defer stop()
	d, err := decide(a)
	if err != nil {
		d = Decision{}
	}
	d.Requests = a.requests
	return d, err
}

// askOrDecideAlone has the store decide or, where it can't be asked, the cache.
func (l *Limiter) askOrDecideAlone(ctx context.Context, decide func(*attempts) (Decision, error)) (Decision, error) {
	var asked *attempts
	d, outage := l.ask(ctx, func(a *attempts) (Decision, error) {
		asked = a
		return decide(a)
	})
	if outage == nil || l.Cache == nil || l.DenyOutage {
		return d, outage
	}
	// What may have been performed is this decision's own here, too.
	d, err := decide(&attempts{ctx: ctx, store: l.Cache, limiter: l, unknown: asked.unknown})
	d.Reason, d.Outage, d.Requests = Unavailable, outage, asked.requests
	return d, err
}

// Clock is the time that decisions count by.
func (l *Limiter) Clock() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

func (r *Request) validate() error {
	limit, _ := r.Policy.Quota()
	if r.Count < 1 {
		return fmt.Errorf("count is %d, want at least 1", r.Count)
	}
	if r.Count > limit && !r.Partial {
		return fmt.Errorf("count is %d, want at most %d: more never fits", r.Count, limit)
	}
	return nil
}
