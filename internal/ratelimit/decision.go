package ratelimit

import (
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A Decision is the answer to a request.
type Decision struct {
	Allowed bool
	Reason  Reason

	// Reading holds the figures after the decision.
	//
	// Limit is 0 if there are no figures: a place was presented and the store was
	// not asked, or the request has NoFigures.
	//
	// Wait is how long until the same request can pass or, with Partial, until
	// one more action can. It is 0 if nothing was refused.
	//
	// At is the receipt. It is 0 unless the check was counted now and the
	// receipt is known to be right.
	policy.Reading

	Granted   int64  // check: how many of Count were taken
	ReadyAt   int64  // Delayed: when the place comes up, in Unix milliseconds
	Waiting   int64  // Delayed: places given in later windows, up to and including this one
	LimitedBy string // the limit that refused, if the policy has several
	Requests  int    // requests that were sent to the store, answered or not
	Outage    error  // why the store gave no answer, if Reason is Unavailable
}

// A Reason is why a decision turned out as it did.
type Reason string

// The reasons. A limiter gives the first five; the last three are for guards.
const (
	OK          Reason = "ok"
	Limited     Reason = "limited"
	Delayed     Reason = "delayed"     // refused now, with a place in a later window
	Duplicate   Reason = "duplicate"   // a repeat of a request that is already counted
	Unavailable Reason = "unavailable" // decided from this instance's memory
	Unlimited   Reason = "unlimited"   // the activity has no limit
	Bypassed    Reason = "bypassed"    // the caller has a role that is never limited
	Shadow      Reason = "shadow"      // over the limit, and let through
)

// decision returns the decision for r with the figures of s, without a receipt.
// Granted is how many of its actions were taken, or would be.
func (r *Request) decision(now int64, s policy.State, granted int64) Decision {
	d := r.withReceipt(now, s, granted)
	d.At = 0
	return d
}

// withReceipt returns what decision returns, and the receipt of actions that are
// counted at now.
func (r *Request) withReceipt(now int64, s policy.State, granted int64) Decision {
	need := r.Count // how many actions r waits for
	switch {
	case granted == r.Count:
		need = 0
	case r.Partial:
		need = 1
	}
	d := Decision{Allowed: granted > 0, Reason: OK, Granted: granted}
	if need > 0 || !r.NoFigures {
		d.Reading = r.Policy.Read(now, need, s)
	}
	if need > 0 {
		d.LimitedBy = d.Name
	}
	if granted == 0 {
		d.Reason = Limited
	}
	return d
}

// found returns the decision for a request whose id is in the item. There are
// three cases:
//
//   - This attempt counted it (done).
//   - An earlier attempt of this decision had an unknown outcome. Then that
//     attempt counted it, or an earlier decision did if the id is the caller's.
//   - Otherwise an earlier decision counted it: a duplicate.
func (r *Request) found(s policy.State, w Write, kept Kept, done bool, t *tries) Decision {
	readyAt := r.place(kept)
	if !done && !t.unsure {
		return r.repeated(w.Now, s, readyAt)
	}
	n := t.plain
	if kept.Note != 0 && !r.Policy.Queues() { // the note of a queue is the place
		n = kept.Note
	}
	d := r.counted(w.Now, s, n, readyAt)
	if !done && (!r.Fresh || d.At != w.Now) {
		d.At = 0 // it may have been counted at another time, so there is no receipt
	}
	return d
}

// counted returns the decision for r, of which n actions are counted in s.
// ReadyAt is the place that it was given; 0: none.
func (r *Request) counted(now int64, s policy.State, n, readyAt int64) Decision {
	return r.delayed(r.withReceipt(now, s, n), now, s, readyAt)
}

// repeated returns the decision for a request that an earlier decision counted.
// Granted is 0 for a partial request, because the item does not show how many
// actions it got then.
func (r *Request) repeated(now int64, s policy.State, readyAt int64) Decision {
	d := r.decision(now, s, r.Count)
	d.Reason = Duplicate
	if r.Partial {
		d.Granted = 0
	}
	return r.delayed(d, now, s, readyAt)
}

// delayed returns d if readyAt has come, and otherwise the answer "come at
// readyAt".
func (r *Request) delayed(d Decision, now int64, s policy.State, readyAt int64) Decision {
	if readyAt <= now {
		return d
	}
	d.Allowed, d.Reason, d.Granted = false, Delayed, 0
	d.ReadyAt, d.Waiting = readyAt, r.Policy.Waiting(now, readyAt, s)
	d.Wait = time.Duration(readyAt-now) * time.Millisecond
	return d
}

// wouldBe returns the decision that a check of r would get if the item had the
// state s. N actions of r fit in s, with the update u.
func (r *Request) wouldBe(s policy.State, w Write, n int64, u policy.Update) Decision {
	d := r.decision(w.Now, s, n)
	if n == 0 {
		return d
	}
	after := u.Apply(s)
	if n < r.Count { // a partial grant: the wait is the one after these n actions
		d.Wait = r.Policy.Read(w.Now, 1, after).Wait
	}
	return r.delayed(d, w.Now, after, u.ReadyAt)
}

// due decides a request that presents a place, without the store. If r is on
// time, it may run. If r is early, it gets the same place again. due returns
// false if r presents no place, or if the place has passed and r needs a new
// one.
func (r *Request) due(now int64) (Decision, bool) {
	if r.ReadyAt == 0 {
		return Decision{}, false
	}
	onTime, early := r.Policy.Due(now, r.ReadyAt)
	d := Decision{Allowed: true, Reason: OK, Granted: r.Count}
	if early {
		d = r.delayed(d, now, nil, r.ReadyAt)
		d.Waiting = 0 // only the store knows how many wait
	}
	return d, onTime || early
}
