package ratelimit

import "time"

// A Request asks a limiter for a decision.
type Request struct {
	UserID   string
	Activity string
	Policy   Policy
	Count    int64  // how many actions; from 1 to the policy's limit, with Partial any number from 1
	Partial  bool   // grant as many of Count as fit, instead of all or nothing
	ID       string // the request's id: repeats of it are counted once. Required
	At       int64  // release only: when the check to give back was counted
}

// A Decision is the answer to a request.
type Decision struct {
	Allowed bool
	Reason  Reason
	Figures
	Limit    int64         // the policy's quota
	Window   time.Duration // and the time it is for
	Wait     time.Duration // until the same request (with Partial: one more action) can pass; 0 where nothing was refused
	Granted  int64         // check: how many of Count were taken
	At       int64         // check: when they were counted; 0 where nothing was counted now
	Requests int           // requests to the store that it took, answered or not
	Outage   error         // why the store could not be asked, where Reason is Unavailable
}

// A Reason says how a decision came about.
type Reason string

// The reasons. The last three are a guard's own: no limiter gives them.
const (
	OK          Reason = "ok"
	Limited     Reason = "limited"
	Duplicate   Reason = "duplicate"   // a repeat of a request that is counted
	Unavailable Reason = "unavailable" // decided on this instance's memory
	Unlimited   Reason = "unlimited"   // the activity has no limit
	Bypassed    Reason = "bypassed"    // the caller has a role that is never limited
	Shadow      Reason = "shadow"      // over the limit, and let through
)

// fits returns how many of the request's actions s takes at now, and the update
// that takes them: all, with Partial perhaps fewer, or 0.
func (r *Request) fits(now int64, s State) (n int64, u Update) {
	n = r.Count
	if r.Partial {
		n = min(n, r.Policy.Figures(now, s).Remaining)
	}
	if n < 1 {
		return 0, Update{}
	}
	u, ok := r.Policy.Plan(now, n)(s)
	if !ok {
		return 0, Update{}
	}
	return n, u
}

// decision is what s says of the request at now, when granted of its actions
// were or would be taken.
func (r *Request) decision(now int64, s State, granted int64, reason Reason) Decision {
	d := Decision{Allowed: true, Reason: reason, Figures: r.Policy.Figures(now, s), Granted: granted}
	d.Limit, d.Window = r.Policy.Quota()
	if granted < r.Count {
		need := r.Count
		if r.Partial {
			need = 1
		}
		d.Wait = r.Policy.Wait(now, need, s)
	}
	if granted == 0 {
		d.Allowed, d.Reason = false, Limited
	}
	return d
}

// counted is the decision that took n of the request's actions now.
func (r *Request) counted(now int64, s State, n int64) Decision {
	d := r.decision(now, s, n, OK)
	d.At = now
	return d
}

// repeat is the decision on a request that is counted already. How many of a
// partial one's actions were granted then, nobody knows now.
func (r *Request) repeat(now int64, s State) Decision {
	d := r.decision(now, s, r.Count, Duplicate)
	if r.Partial {
		d.Granted = 0
	}
	return d
}

func (r *Request) key(p Place) Key {
	return Key{UserID: r.UserID, Activity: r.Activity, Window: p.Window}
}
