package ratelimit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A Limiter decides requests on a store. It is safe for concurrent use.
type Limiter struct {
	Store Store

	// Memory repeats a refusal for up to a second without asking the store, and
	// decides during an outage. Nil: every decision asks the store, and an
	// outage is always an error.
	Memory *Memory

	// Timeout is how long one decision may take, all attempts included. Zero:
	// one attempt without a timeout, for a store in memory.
	Timeout time.Duration

	// Now is the clock that decisions count by. Nil: time.Now.
	Now func() time.Time

	// Attempts returns the budget of one decision, which times its attempts. It
	// is for simulations; Timeout is then ignored, for probes too. Nil: each
	// attempt gets a share of Timeout, and the pauses are random.
	Attempts func() Budget

	breaker   breaker
	connected atomic.Bool // the last attempt was answered, so a connection is open
}

// A Budget decides how many attempts one decision makes, and how long each may
// take. Package retry has the one that a limiter with a Timeout uses.
type Budget interface {
	// Next returns how long the next attempt may take; 0 means without a limit.
	// It returns false if there is no time for another attempt. If failed is
	// set, the last attempt failed, and Next pauses before it returns.
	Next(ctx context.Context, failed bool) (time.Duration, bool)
}

// Check decides whether r may go ahead, and counts it if so. If the store gives
// no answer, the error is a *StoreError. With r.Alone and a Memory, Check then
// decides from memory and returns no error. An error of another type names the
// field of r that is out of range.
func (l *Limiter) Check(ctx context.Context, r Request) (Decision, error) {
	if err := r.validate(r.most()); err != nil {
		return Decision{}, err
	}
	now := l.Clock()
	if d, ok := r.due(now.UnixMilli()); ok {
		return d, nil
	}
	w := r.write(now.UnixMilli())
	known := l.Memory.Recall(w.Key)
	if d, ok := known.refuse(&r, w, now); ok {
		return d, nil
	}
	d, t, err := l.ask(ctx, w.Key, func(t *tries) (Decision, error) { return t.check(&r, w, known.shown()) })
	if err == nil || !r.Alone || l.Memory == nil {
		return d, err
	}
	d = l.alone(&r, w, t, known)
	d.Requests, d.Outage = t.requests, err
	d.At = 0 // the store may not have it, so there is no receipt
	return d, nil
}

// alone decides r from memory. Known is what the memory held when r came. If r
// sent no request and known refuses it, alone returns that refusal and leaves the
// memory as it is. So an outage does not repack the memory for each refusal.
// Otherwise alone decides and counts in one step on the memory, because
// other decisions may have changed the memory.
func (l *Limiter) alone(r *Request, w Write, t *tries, known Known) (d Decision) {
	if t.requests == 0 {
		if _, d = known.admit(r, w, t); !d.Allowed && d.ReadyAt == 0 {
			return d
		}
	}
	l.Memory.Change(w.Key, func(k Known) Known {
		k, d = k.admit(r, w, t)
		return k
	})
	return d
}

// Status returns the decision that Check would make, and counts nothing. It
// returns the same errors as Check.
func (l *Limiter) Status(ctx context.Context, r Request) (Decision, error) {
	if err := r.validate(r.most()); err != nil {
		return Decision{}, err
	}
	now := l.Clock().UnixMilli()
	if d, ok := r.due(now); ok {
		return d, nil
	}
	w := r.write(now)
	d, t, err := l.ask(ctx, w.Key, func(t *tries) (Decision, error) { return t.status(&r, w) })
	if err == nil || !r.Alone || l.Memory == nil {
		return d, err
	}
	d = l.Memory.Recall(w.Key).status(&r, w)
	d.Requests, d.Outage = t.requests, err
	return d, nil
}

// Release gives back r.Count actions of the check whose id is r.ID and whose
// receipt is r.At. It works for 20 s after the check. Two kinds work longer: a
// fixed window with a limit of up to 100 until it ends, and a log as long as its
// slots count. A release without an effect is no error. The error is a
// *StoreError, or names the field of r that is out of range.
//
// A release that is sent twice within 20 s gives back once. Don't repeat it
// later: on a log, it could then give back another action of the same
// millisecond.
func (l *Limiter) Release(ctx context.Context, r Request) (Decision, error) {
	if err := r.validate(MostReleased); err != nil {
		return Decision{}, err
	}
	now := l.Clock().UnixMilli()
	if ahead := r.At - now; 0 < ahead && ahead <= mostAhead.Milliseconds() {
		now = r.At // the check was counted by an instance whose clock is ahead
	}
	w := r.write(now)
	d, _, err := l.ask(ctx, w.Key, func(t *tries) (Decision, error) { return t.release(&r, w) })
	l.Memory.Change(w.Key, func(k Known) Known { return k.doubt(l.Clock()) })
	return d, err
}

// mostAhead is how far ahead the clock that gave a receipt may be.
const mostAhead = 120 * time.Second

// Reset deletes the item that counts r's activity now. After an unknown outcome
// Reset does not send the delete again, because it could remove actions that
// were counted since. The error is a *StoreError.
func (l *Limiter) Reset(ctx context.Context, r Request) (Decision, error) {
	w := r.write(l.Clock().UnixMilli())
	d, _, err := l.ask(ctx, w.Key, func(t *tries) (Decision, error) {
		return r.decision(w.Now, nil, r.Count), t.delete(w.Key)
	})
	l.Memory.Change(w.Key, func(k Known) Known {
		if err == nil {
			k = Known{}
		}
		return k.doubt(l.Clock())
	})
	return d, err
}

// CircuitOpen reports whether the circuit breaker is open. While it is open,
// only one decision in 5 s asks the store.
func (l *Limiter) CircuitOpen() bool {
	table, _ := l.CircuitProbed(Key{})
	return !table.IsZero()
}

// ask runs decide, which sends requests to the store, unless a circuit breaker
// is open. Afterwards it stores the last answer in the memory. An answer of the
// class Unreadable or Invalid brings no state, so the memory keeps what it has.
func (l *Limiter) ask(ctx context.Context, key Key, decide func(*tries) (Decision, error)) (Decision, *tries, error) {
	t := &tries{limiter: l, ctx: ctx, caller: ctx}
	probe, cause := l.breaker.enter(key, l.Clock())
	if cause != nil {
		return Decision{}, t, cause
	}
	stop := t.begin()
	defer stop()
	if probe {
		if err := t.probe(key); err != nil {
			return Decision{Requests: t.requests}, t, err
		}
	}
	d, err := decide(t)
	failed := asStoreError(err)
	l.breaker.ended(key, t, failed, l.Clock())
	if t.answered && (failed == nil || !failed.noState()) {
		l.learn(key, t.answer, t.told)
	}
	if err != nil {
		d = Decision{}
	}
	d.Requests = t.requests
	return d, t, err
}

// learn stores in the memory an item that an attempt brought, which began at
// asked.
func (l *Limiter) learn(key Key, item Item, asked time.Time) {
	now := l.Clock()
	l.Memory.Change(key, func(k Known) Known { return k.learn(item, asked, now) })
}

// Clock returns the time that decisions count by.
func (l *Limiter) Clock() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

// check counts r in the store. Each turn of its loop sends one update and looks
// at the item that comes back. The first line that applies decides:
//
//	the item has r's id         counted, by this attempt or an earlier one
//	the sent guard holds there  unreadable: the store refused the guard, so the
//	                            attributes cannot mean what they seem to
//	r does not fit in the item  limited
//	the new plan does not hold  unreadable: no policy has written this item
//	otherwise                   send the new plan
//
// For example, 10 of 10/1m are counted and this process knows nothing. The plan
// for an empty item has the guard activityCount <= 9. The store refuses it and
// returns the count of 10, in which r does not fit: limited, after one request.
func (t *tries) check(r *Request, w Write, known policy.State) (Decision, error) {
	n := min(r.Count, r.Policy.Most())
	var ok bool
	if w.Update, ok = r.take(w, n, known); !ok {
		w.Update, _ = r.take(w, n, nil) // does not fit what is known, which may be old: plan for an empty item
	}
	for {
		w.Note = max(w.Update.ReadyAt, t.note(n)) // at most one is set: a queue gives one place at a time
		item, done, err := t.update(w)
		if err != nil {
			return Decision{}, err
		}
		if kept, found := item.Find(w); found {
			return r.found(item.State, w, kept, done, t), nil
		}
		if n, w.Update = r.fits(w, item.State); n == 0 {
			return r.decision(w.Now, item.State, 0), nil
		}
		if !w.Update.Holds(item.State) {
			return Decision{}, unreadable("")
		}
	}
}

// status reads the item and decides without counting.
func (t *tries) status(r *Request, w Write) (Decision, error) {
	item, err := t.read(w.Key)
	if err != nil {
		return Decision{}, err
	}
	if err := r.readable(w, item); err != nil {
		return Decision{}, err
	}
	if kept, counted := item.Find(w); counted {
		return r.repeated(w.Now, item.State, r.place(kept)), nil
	}
	n, u := r.fits(w, item.State)
	return r.wouldBe(item.State, w, n, u), nil
}
