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

	// Alongside begins what is to run while the store is asked anyway, and returns
	// how to wait for its end. Nil: nothing is.
	Alongside func(context.Context) (wait func())

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
	if d, ok := r.presented(now.UnixMilli()); ok {
		return d, nil
	}
	if d, ok := l.Cache.refuse(&r, now); ok {
		return d, nil
	}
	return l.askOrDecideAlone(ctx, &r, func(a *attempts) (Decision, error) {
		return l.check(a, &r, now.UnixMilli())
	})
}

// check is the one loop: it plans from the last state seen or from nothing,
// and plans again from the item that a failed condition brought back.
func (l *Limiter) check(a *attempts, r *Request, now int64) (Decision, error) {
	w := r.write(now)
	limit, _ := r.Policy.Quota()
	n := min(r.Count, limit)
	plan := r.Policy.Plan(now, n)
	var ok bool
	if w.Update, ok = plan(l.Cache.hint(w.Key)); !ok {
		w.Update, _ = plan(nil)
	}
	for {
		item, done, err := a.Update(w, n)
		if err != nil {
			return Decision{}, err
		}
		if later, counted := item.Later(w); counted {
			switch {
			case done:
				return r.counted(now, item.State, n, 0), nil
			case a.unknown > 0: // found after an attempt of unknown outcome, it is that attempt's
				return r.counted(now, item.State, a.unknown, later), nil
			}
			return r.repeat(now, item.State, later), nil
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
	return l.askOrDecideAlone(ctx, &r, func(a *attempts) (Decision, error) {
		w := r.write(now)
		item, err := a.Read(w.Key)
		if err != nil {
			return Decision{}, err
		}
		if later, counted := item.Later(w); counted {
			return r.repeat(now, item.State, later), nil
		}
		n, u := r.fits(now, item.State)
		d := r.decision(now, item.State, n, OK)
		if n == 0 {
			return d, nil
		}
		after := u.Apply(item.State)
		if n < r.Count { // the wait begins where the grant leaves off
			d.Wait = r.Policy.Wait(now, 1, after)
		}
		return r.inTurn(d, now, after, 0), nil
	})
}

// Release gives back r.Count actions of the check r.ID, which was counted at
// r.At: once, and only while it still counts; else nothing changes. The error
// is a *StoreError, or says that r.Count is out of range.
func (l *Limiter) Release(ctx context.Context, r Request) (Decision, error) {
	if r.Count < 1 {
		return Decision{}, errCount(r.Count)
	}
	now := l.Clock().UnixMilli()
	if ahead := r.At - now; 0 < ahead && ahead <= clockSlack.Milliseconds() {
		now = r.At // counted by an instance whose clock is ahead
	}
	return l.ask(ctx, func(a *attempts) (Decision, error) {
		item, err := l.release(a, &r, now)
		return r.decision(now, item.State, r.Count, OK), err
	})
}

// release is check's loop the other way. It returns the item as it stands then.
func (l *Limiter) release(a *attempts, r *Request, now int64) (Item, error) {
	w := r.write(now)
	plan, byID := r.Policy.Release(now, r.At, r.Count)
	if w.Release = byID; !byID {
		w.ID = NewID("release " + r.ID) // once
	}
	if r.Policy.Place(r.At).Window != w.Key.Window {
		return a.Read(w.Key) // too late
	}
	var ok bool
	if w.Update, ok = plan(l.Cache.hint(w.Key)); !ok {
		item, err := a.Read(w.Key)
		if w.Update, ok = plan(item.State); !ok || err != nil {
			return item, err
		}
	}
	defer l.Cache.doubt(w.Key)
	for {
		item, done, err := a.Update(w, 0)
		if done || err != nil || item.Has(w) != byID {
			return item, err
		}
		if w.Update, ok = plan(item.State); !ok {
			return item, nil
		}
	}
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
	if l.Alongside != nil {
		defer l.Alongside(ctx)()
	}
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
func (l *Limiter) askOrDecideAlone(ctx context.Context, r *Request, decide func(*attempts) (Decision, error)) (Decision, error) {
	var asked *attempts
	d, outage := l.ask(ctx, func(a *attempts) (Decision, error) {
		asked = a
		return decide(a)
	})
	if outage == nil || l.Cache == nil || l.DenyOutage && !r.Alone {
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

// write is what r writes at now, but for the update.
func (r *Request) write(now int64) Write {
	place := r.Policy.Place(now)
	return Write{Key: r.key(place), ID: NewID(r.ID), Ordered: place.Ordered, Now: now, Expires: place.Expires}
}

func (r *Request) validate() error {
	limit, _ := r.Policy.Quota()
	if r.Count < 1 {
		return errCount(r.Count)
	}
	if r.Count > limit && !r.Partial {
		return fmt.Errorf("count is %d, want at most %d: more never fits", r.Count, limit)
	}
	return nil
}

func errCount(n int64) error { return fmt.Errorf("count is %d, want at least 1", n) }
