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
	Alone    bool   // decide alone in an outage though the limiter denies
	ReadyAt  int64  // check of a [Reservoir] only: the place that was given before; 0: none
}

// A Decision is the answer to a request.
type Decision struct {
	Allowed bool
	Reason  Reason
	Figures
	Limit     int64         // the policy's quota; 0 where there are no figures: a place that was given before
	Window    time.Duration // and the time it is for
	Wait      time.Duration // until the same request (with Partial: one more action) can pass; 0 where nothing was refused
	Granted   int64         // check: how many of Count were taken
	At        int64         // check: when they were counted; 0 where nothing was counted now
	Turn                    // Delayed: the place that was given
	Each      []Each        // several limits on one activity: each one's figures
	LimitedBy string        // the one of them that refused
	Requests  int           // requests to the store that it took, answered or not
	Outage    error         // why the store could not be asked, where Reason is Unavailable
}

// A Reason says how a decision came about.
type Reason string

// The reasons. The last three are a guard's own: no limiter gives them.
const (
	OK          Reason = "ok"
	Limited     Reason = "limited"
	Delayed     Reason = "delayed"     // refused now, with a place for later
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
	var need int64 // what it waits for
	switch {
	case granted == r.Count:
	case r.Partial:
		need = 1
	default:
		need = r.Count
	}
	if need > 0 {
		d.Wait = r.Policy.Wait(now, need, s)
	}
	if p, ok := r.Policy.(Several); ok {
		each, i := p.each(now, need, s)
		d.Each, d.Figures, d.Limit, d.Window = each, each[i].Figures, each[i].Limit, each[i].Window
		if need > 0 {
			d.LimitedBy = each[i].Name
		}
	}
	if granted == 0 {
		d.Allowed, d.Reason = false, Limited
	}
	return d
}

// counted is the decision that took n of the request's actions now. Later says
// how many requests were counted in s after it.
func (r *Request) counted(now int64, s State, n int64, later int) Decision {
	d := r.decision(now, s, n, OK)
	d.At = now
	return r.inTurn(d, now, s, later)
}

// repeat is the decision on a request that is counted already. How many of a
// partial one's actions were granted then, nobody knows now.
func (r *Request) repeat(now int64, s State, later int) Decision {
	d := r.decision(now, s, r.Count, Duplicate)
	if r.Partial {
		d.Granted = 0
	}
	return r.inTurn(d, now, s, later)
}

// inTurn is the decision for a request that was counted in s before later ones:
// delayed, where a reservoir gave it a place in a window to come.
func (r *Request) inTurn(d Decision, now int64, s State, later int) Decision {
	p, ok := r.Policy.(Reservoir)
	if !ok {
		return d
	}
	if turn := p.Turn(now, s, later); turn.ReadyAt > 0 {
		return d.delayed(now, turn)
	}
	return d
}

func (d Decision) delayed(now int64, turn Turn) Decision {
	d.Allowed, d.Reason, d.Granted = false, Delayed, 0
	d.Turn, d.Wait = turn, millis(turn.ReadyAt-now)
	return d
}

// presented decides on the place that the request was given before, for which
// no store is asked: false where it has passed, and a new one is wanted.
func (r *Request) presented(now int64) (Decision, bool) {
	p, ok := r.Policy.(Reservoir)
	if !ok || r.ReadyAt == 0 {
		return Decision{}, false
	}
	onTime, early := p.Presented(now, r.ReadyAt)
	d := Decision{Allowed: true, Reason: OK, Granted: r.Count}
	if early {
		d = d.delayed(now, Turn{ReadyAt: r.ReadyAt})
	}
	return d, onTime || early
}

func (r *Request) key(p Place) Key {
	return Key{UserID: r.UserID, Activity: r.Activity, Window: p.Window}
}
