package guards

import (
	"errors"
	"time"
)

// The kinds of errors that a decision can fail with. Check them with [errors.Is].
var (
	ErrValidation  = errors.New("the request is wrong")        // nothing was counted
	ErrUnavailable = errors.New("the table gives no decision") // whether something was counted is unknown
)

// A Reason is why a decision turned out as it did.
type Reason string

// The reasons.
const (
	OK          Reason = "ok"          // allowed and counted, perhaps only in part: see Granted
	Limited     Reason = "limited"     // refused
	Delayed     Reason = "delayed"     // refused now, but the job has a place at ReadyAt
	Duplicate   Reason = "duplicate"   // a repeat of a check that was counted before
	Unlimited   Reason = "unlimited"   // the activity has no limit, or it or its guard is switched off
	Bypassed    Reason = "bypassed"    // one of the roles is never limited
	Shadow      Reason = "shadow"      // over the limit, but the guard refuses nobody
	Unavailable Reason = "unavailable" // decided from memory, because the table did not answer
	Expired     Reason = "expired"     // renew: the slot does not count any more
	Blocked     Reason = "blocked"     // an operator has blocked the user or a subject, until ResetAt
)

// A Decision is a guard's answer. Fields that an answer does not have are zero. Its JSON is
// the answer that a guard's function gives.
type Decision struct {
	Allowed  bool   `json:"allowed"`
	Reason   Reason `json:"reason"`
	UserID   string `json:"userId"`
	Activity string `json:"activity"`
	Op       Op     `json:"op"`

	// The figures of the limit that restricts the user most. Limit is 0 if the answer has none.
	Limit         int64 `json:"limit"`         // actions allowed in a window; of a bucket its burst
	ActivityCount int64 `json:"activityCount"` // actions counted in the current window, after this answer
	Remaining     int64 `json:"remaining"`     // actions left now
	WaitTime      int64 `json:"waitTime"`      // milliseconds until the same request can pass; 0 if nothing was refused
	ResetAt       int64 `json:"resetAt"`       // Unix milliseconds when everything that counts now has expired
	Locked        bool  `json:"locked"`        // a lockout allows nothing until ResetAt
	WindowKey     int64 `json:"windowKey"`     // the number of the window, if one fixed window, counter or reservoir decides alone

	Granted   int64  `json:"granted"`   // how many of the request's actions were taken
	At        int64  `json:"at"`        // the receipt for a release or a renewal, in Unix milliseconds; 0 if there is none
	RequestID string `json:"requestId"` // belongs to the receipt
	HeldUntil int64  `json:"heldUntil"` // if the limit is a log: Unix milliseconds when the actions stop counting, by the guard's clock
	Message   string `json:"message"`   // a text for the user, if something was refused
	Display   string `json:"display"`   // the activity's label and its figures, such as 12-hour pins: 93/100

	ReadyAt  int64 `json:"readyAt"`  // Delayed: Unix milliseconds when the job's place comes up
	Enqueued int64 `json:"enqueued"` // Delayed: places given in later windows, up to and including this one

	// Crossed is 80 or 100 if this check raised the count of a fixed window to 80 % or to 100 %
	// of its limit, and otherwise 0; 100 if it crossed both. At most one check in a window has
	// each number, so an app that sends a mail when Crossed is not 0 sends at most two. The
	// attempt that locks a lockout has 100, too. If there are several limits, it is about the
	// one whose figures the decision has.
	Crossed int64 `json:"crossed"`

	LimitedBy string    `json:"limitedBy"` // the limit or subject that refused, if there are several, such as room.minute
	Limits    []Figures `json:"limits"`    // each limit, if there are several

	Version string `json:"version"` // Status: the release of Guards that answers; empty if it was built without one
}

// Figures are one limit's figures, if an activity and its subjects have several limits. They
// are as in [Decision].
type Figures struct {
	Name          string `json:"name,omitzero"` // such as minute, room or room.minute
	Limit         int64  `json:"limit"`
	ActivityCount int64  `json:"activityCount"`
	Remaining     int64  `json:"remaining"`
	WaitTime      int64  `json:"waitTime"`
	ResetAt       int64  `json:"resetAt"`
	Locked        bool   `json:"locked,omitzero"`
	Crossed       int64  `json:"crossed,omitzero"`
}

// RetryAfter returns how long to wait until the same request can pass; 0 if nothing was
// refused.
func (d Decision) RetryAfter() time.Duration { return time.Duration(d.WaitTime) * time.Millisecond }

// ResetTime returns ResetAt as a time; zero if there is none.
func (d Decision) ResetTime() time.Time { return moment(d.ResetAt) }

// HeldTime returns HeldUntil as a time; zero if there is none.
func (d Decision) HeldTime() time.Time { return moment(d.HeldUntil) }

// ReadyTime returns ReadyAt as a time; zero if there is none.
func (d Decision) ReadyTime() time.Time { return moment(d.ReadyAt) }

// moment returns the time of Unix milliseconds; 0 is the zero time.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
