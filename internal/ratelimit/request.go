package ratelimit

import (
	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/policy"
)

// A Request asks a limiter for a decision.
type Request struct {
	UserID   string
	Activity string
	Group    string // the item that counts Activity with others, whose limits have names; empty: it counts alone
	For      string // if UserID is another subject, such as a room: the user; else empty
	Policy   policy.Policy
	Count    int64  // how many actions: 1 to the policy's Max; with Partial any number from 1; release and renew: 1 to MaxReleased
	Partial  bool   // grant as many of Count as fit, instead of all or nothing
	ID       string // the request's id, required; a repeat with the same id is not counted again
	Fresh    bool   // ID was made for this decision, so no earlier decision can have used it
	Shared   bool   // the action can count in other items, too; see [Limiter.DecideAll], which sets it
	Hold     bool   // the id and the receipt serve for 15 minutes and not only for 20 s; the same for each op
	At       int64  // release, renew: the receipt of the check, in Unix milliseconds; else 0
	Clear    bool   // release: also end the series of each lockout, whether or not actions are given back
	ReadyAt  int64  // check: the place that the policy gave earlier, in Unix milliseconds; 0: none
	Fallback bool   // in an outage, decide a check or a status from memory; otherwise the outage is an error
}

// An Op is what a limiter does for a request.
type Op = guards.Op

// The ops.
const (
	// Check decides whether the request may go ahead, and counts it if so.
	Check = guards.Check

	// Status makes the decision that Check would make, and counts nothing.
	Status = guards.Status

	// Release gives back Count actions of the check whose id is ID. At is its receipt, from
	// the check or from a renewal. In a fixed window it works until the window ends, and for
	// at most 20 s if the limit is above 100. In a log it works as long as the slots count,
	// and otherwise for 20 s after the check. With Hold it works for 15 minutes instead. Of
	// several limits, a later release frees the slots of a log alone. A release without an
	// effect is no error.
	//
	// A release that is sent twice within 20 s gives back once. Don't repeat it later. On a
	// log, it could then give back another action of the same millisecond. Elsewhere, it
	// could give back a later check of the same id, if their receipts are less than 7 s
	// apart.
	Release = guards.Release

	// Renew moves Count actions of a log to now: the actions of the check whose id is
	// ID and whose receipt is At. So they count for one window from now. The decision
	// has their new receipt. If they do not count any more, it is not Allowed, and the
	// reason is Expired. For 20 s after a renewal, the older receipts of the check
	// still serve. The policy needs a log, see [policy.Policy.HeldUntil]; its other
	// limits stay as they are.
	Renew = guards.Renew

	// Reset deletes the item that counts the activity now. After an unknown
	// outcome it does not send the delete again, because that could remove actions
	// that were counted since.
	Reset = guards.Reset
)

// MaxReleased is the most actions that one release gives back, or one renewal renews.
const MaxReleased = 1_000_000

// A Decision is the answer to a request.
type Decision struct {
	Allowed bool
	Reason  Reason

	// Reading holds the figures after the decision.
	//
	// Limit is 0 without figures: a place was presented, and the store not asked.
	//
	// Wait is how long until the same request can pass or, with Partial, until
	// one more action can. It is 0 if nothing was refused.
	policy.Reading

	// At is the receipt, in Unix milliseconds: when the check came, or the last renewal. It
	// is 0 unless the check was counted now.
	At        int64
	HeldUntil int64  // with At, for a log: when the actions stop counting, in Unix milliseconds; else 0
	Granted   int64  // check: how many of Count were taken
	ReadyAt   int64  // Delayed: when the place comes up, in Unix milliseconds
	Waiting   int64  // Delayed: places given in later windows, up to and including this one
	LimitedBy string // the limit that refused, if the policy has several
	Leased    bool   // admitted from a lease of a prepaid limit, without a request
	Acquired  bool   // admitted by the request that took a lease
	Requests  int    // requests that were sent to the store, answered or not
	Outage    error  // why the store gave no answer, if Reason is Unavailable
}

// Limits returns the figures of each limit. For a single limit, these are the
// decision's own figures.
func (d *Decision) Limits() []policy.Reading {
	if len(d.Each) > 0 {
		return d.Each
	}
	return []policy.Reading{d.Reading}
}

// ByLimit gives d the figures of one of its limits. If d is a refusal, that limit refused.
func (d *Decision) ByLimit(i int) {
	each := d.Each
	d.Reading = each[i]
	d.Each, d.WindowKey = each, 0
	if !d.Allowed {
		d.LimitedBy = d.Name
	}
}

// A Reason is why a decision turned out as it did.
type Reason = guards.Reason

// The reasons. A limiter gives the first six; the last three are for guards.
const (
	OK          = guards.OK
	Limited     = guards.Limited
	Delayed     = guards.Delayed     // refused now, with a place in a later window
	Duplicate   = guards.Duplicate   // a repeat of a request that is already counted
	Expired     = guards.Expired     // renew: the actions do not count any more
	Unavailable = guards.Unavailable // in an outage: decided from this instance's memory
	Unlimited   = guards.Unlimited   // the activity has no limit
	Bypassed    = guards.Bypassed    // the caller has a role that is never limited
	Shadow      = guards.Shadow      // over the limit, and let through
	Blocked     = guards.Blocked     // an operator has blocked the user or a subject
)
