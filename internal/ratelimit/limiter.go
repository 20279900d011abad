// Package ratelimit decides whether an action may go ahead. It admits exactly
// as many actions as the limit says. It counts a request once, even if it is sent
// again within 20 s. Only a fixed window that has ended knows no ids any more.
//
// A program makes one [Limiter] and asks it about each [Request]:
//
//	limiter := &ratelimit.Limiter{Store: new(memstore.Store)}
//	d, err := limiter.Check(ctx, ratelimit.Request{
//		UserID: "u1", Activity: "vote", Policy: policy.Must("10/1m"),
//		Count: 1, ID: "r1",
//	})
//	// d.Allowed is true, and d.Remaining is 9
//
// A [policy.Policy] is the rule. It decides from a state, without side effects.
// A [Store] keeps the states and changes one item in one atomic step. The
// limiter is the loop between them:
//
//  1. It asks its [Memory] what this process knows about the item. If that
//     refuses, and is at most a second old, the answer is "limited" without a
//     request.
//  2. It plans an update from what it knows, or from an empty item, and sends
//     it.
//  3. If the store refuses the update, its answer contains the item. The
//     limiter plans again from that item, or answers "limited".
//  4. It stores the item of the last answer in its memory.
//
// A refusal is an answer. An error means "I don't know": the store gave no
// usable answer. A request with [Request.Fallback] then gets a decision from
// memory instead of the error, and [Decision.Outage] holds the error.
//
// Times are Unix milliseconds unless a name says otherwise. Only the limiter
// reads a clock.
package ratelimit

import (
	"context"
	"time"
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

	// NewBudget returns the budget of one decision. It is for simulations: Timeout is then
	// ignored, and nothing is sent beside a request. Nil: each request is sent at most six
	// times within Timeout, with random pauses.
	NewBudget func() Budget

	breaker breaker
}

// A Budget decides how many attempts one decision makes.
type Budget interface {
	// Next reports whether there is time for another attempt. If failed is set, the last
	// attempt failed, and Next pauses before it returns.
	Next(ctx context.Context, failed bool) bool
}

// recall returns what is known of the item of q, unless q asks only the store. It also sets
// q.shown, which is zero if Seen has actions that were admitted alone, too.
func (l *Limiter) recall(q *question) (k Known) {
	if q.op != Status && q.op != Reset && !l.Memory.leased(q) {
		k = l.Memory.Recall(q.write.Key)
	}
	if q.shown = k.Seen; k.Asked.IsZero() {
		q.shown = Item{}
	}
	return k
}

// decide answers q, which the memory does not refuse, from a lease or from the store.
func (l *Limiter) decide(ctx context.Context, q *question) (Decision, error) {
	if d, ok := l.Memory.consume(q); ok {
		return d, nil
	}
	d, err := l.askStore(ctx, q)
	if q.lease == nil && q.held > 0 {
		l.Memory.release(q)
	}
	switch {
	case q.op == Release || q.op == Reset:
		l.Memory.Change(q.write.Key, func(k Known) Known {
			if q.op == Reset && err == nil {
				k = Known{}
			}
			return k.invalidate(l.Clock())
		})
	case err != nil && q.op != Renew && q.Fallback && l.Memory != nil:
		return l.outage(q, d.Requests, err), nil
	case q.hot && !q.relies && err == nil && !d.Allowed: // until then, the memory refuses
		d.Wait = max(d.Wait, q.pause(q.write.Now))
	}
	return d, err
}

// outage decides q from memory, because its requests brought no usable answer. It decides and
// counts a check in one step on the memory, because other decisions may have changed the memory.
func (l *Limiter) outage(q *question, requests int, cause error) (d Decision) {
	if q.op == Status {
		_, d = l.Memory.Recall(q.write.Key).admit(q)
	} else {
		q.write.KeepOld = q.write.KeepOld || l.isOld(&q.write)
		l.Memory.Change(q.write.Key, func(k Known) Known {
			k, d = k.admit(q)
			return k
		})
	}
	d.Requests, d.Outage = requests, cause
	d.At = 0 // the store may not have it, so there is no receipt
	return d
}

// Check decides whether r may go ahead, and counts it if so. See [Limiter.Decide].
func (l *Limiter) Check(ctx context.Context, r Request) (Decision, error) {
	return l.Decide(ctx, Check, r)
}

// budget returns the budget of a decision; nil: its time is enough.
func (l *Limiter) budget() Budget {
	switch {
	case l.NewBudget != nil:
		return l.NewBudget()
	case l.Timeout == 0:
		return oneAttempt{}
	}
	return nil
}

// askStore asks the store for the answer to q, unless a circuit breaker is open. To give
// back what this decision has counted, it neither asks a circuit nor changes one. The part
// that failed may have opened it just now, and an answer to a give-back must not close it.
// AskStore stores the last answer in the memory. An answer of the class
// Unreadable or Invalid brings no state, so the memory keeps what it has.
func (l *Limiter) askStore(ctx context.Context, q *question) (Decision, error) {
	key := q.write.Key
	t := &attempts{question: q, limiter: l, ctx: ctx, budget: l.budget()}
	if q.budget != nil { // its probe has used some of it
		t.budget = q.budget
	}
	if !q.mine && !q.looked { // such as a check whose lease is used up meanwhile
		q.barred, _ = l.breaker.look(key, l.Clock())
	}
	if q.barred != nil {
		return Decision{}, q.barred
	}
	d, failed := t.carryOut()
	if !q.mine {
		l.breaker.done(key, t, failed, l.Clock())
	}
	if !t.asked.IsZero() && (failed == nil || !failed.noState()) {
		now := l.Clock()
		l.Memory.Change(key, func(k Known) Known {
			k = k.learn(q.shown, t.asked, now)
			if q.op == Check && d.Reason == OK && q.Policy.Prepaid() {
				k = k.lend(q, d.Granted, l.Memory.Crowd)
			}
			return k
		})
	}
	if failed != nil {
		return Decision{Requests: t.requests}, failed
	}
	d.Requests = t.requests
	return d, nil
}

// Clock returns the time that decisions count by. It has no monotonic reading, because the
// monotonic clock can stand still while Lambda freezes the process.
func (l *Limiter) Clock() time.Time {
	if l.Now == nil {
		return time.Now().Round(0)
	}
	return l.Now().Round(0)
}
