package ratelimit

import "github.com/cric-talk/guards/internal/policy"

// A Request asks a limiter for a decision.
type Request struct {
	UserID   string
	Activity string
	Policy   policy.Policy
	Count    int64  // how many actions: 1 to the policy's Most; with Partial any number from 1; release: 1 to MostReleased
	Partial  bool   // grant as many of Count as fit, instead of all or nothing
	ID       string // the request's id, required; a repeat with the same id is not counted again
	Fresh    bool   // ID was made for this decision, so no earlier decision can have used it
	At       int64  // release: the receipt of the check to give back, in Unix milliseconds
	ReadyAt  int64  // check: the place that the policy gave earlier, in Unix milliseconds; 0: none
	Alone    bool   // in an outage, decide a check or a status from memory; otherwise the outage is an error
}

// An Op is what a limiter does for a request.
type Op string

// The ops.
const (
	// Check decides whether the request may go ahead, and counts it if so.
	Check Op = "check"

	// Status makes the decision that Check would make, and counts nothing.
	Status Op = "status"

	// Release gives back Count actions of the check whose id is ID and whose
	// receipt is At. In a fixed window it works until the window ends, and for at
	// most 20 s if the limit is above 100. In a log it works as long as the slots
	// count, and otherwise for 20 s. A release without an effect is no error.
	//
	// A release that is sent twice within 20 s gives back once. Don't repeat it
	// later: on a log, it could then give back another action of the same
	// millisecond.
	Release Op = "release"

	// Reset deletes the item that counts the activity now. After an unknown
	// outcome it does not send the delete again, because that could remove actions
	// that were counted since.
	Reset Op = "reset"
)

// MostReleased is the most actions that one release gives back.
const MostReleased = 1_000_000

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
	Unavailable Reason = "unavailable" // in an outage: decided from this instance's memory
	Unlimited   Reason = "unlimited"   // the activity has no limit
	Bypassed    Reason = "bypassed"    // the caller has a role that is never limited
	Shadow      Reason = "shadow"      // over the limit, and let through
)
