package client

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"
)

// A Reason is why a decision turned out as it did.
type Reason string

// The reasons.
const (
	OK          Reason = "ok"
	Limited     Reason = "limited"
	Delayed     Reason = "delayed"     // refused now, but the job has a place at ReadyAt
	Unlimited   Reason = "unlimited"   // the activity has no limit, or its guard is switched off
	Bypassed    Reason = "bypassed"    // one of the roles is never limited
	Shadow      Reason = "shadow"      // over the limit, but the guard refuses nobody
	Duplicate   Reason = "duplicate"   // a repeat of a check that was counted before
	Unavailable Reason = "unavailable" // decided without the table; with Decision.Outage, without the guard
	Expired     Reason = "expired"     // renew: the slot does not count any more
	Blocked     Reason = "blocked"     // an operator has blocked the user or a subject, until ResetAt
)

// A Decision is a guard's answer. Fields that an answer does not have are zero.
// As JSON, a Decision has the form of the guard's answer, with Guard and Subjects.
type Decision struct {
	Allowed  bool
	Reason   Reason
	UserID   string
	Activity string
	Op       string

	// The figures. Limit is 0 if the answer has none.
	Limit         int64         // actions allowed per window; for a bucket its burst
	ActivityCount int64         // actions counted in the current window, after this answer
	Remaining     int64         // actions left now
	WaitTime      time.Duration // until the same request can pass; 0 if nothing was refused
	ResetAt       time.Time     // when everything that counts now has expired
	WindowKey     int64         // the window's number

	Granted   int64     // how many of the request's actions were taken
	At        int64     // the receipt for a release or a renewal, in Unix milliseconds; 0 if there is none
	RequestID string    // belongs to the receipt
	HeldUntil time.Time // if the limit is a log: when the actions stop counting, by the guard's clock
	Message   string    // a text for the user, if something was refused
	Display   string    // the limit and its use in words, such as "12-hour pins: 93/100"

	ReadyAt   time.Time // Delayed: when the job's place comes up
	Enqueued  int64     // Delayed: places given in later windows, up to and including this one
	LimitedBy string    // the limit or subject that refused, if there are several, such as "room" or "room.minute"; Blocked: the subject
	Limits    []Limit   // each limit, if there are several

	// Crossed is 80 or 100 if this check raised the count of a fixed window to 80 % or
	// to 100 % of its limit, and otherwise 0. If the check crossed both, it is 100. At
	// most one check in a window has each number, so an app that sends a mail when
	// Crossed is not 0 sends at most two. If the activity has several limits, Crossed
	// is about the limit whose figures the decision has.
	Crossed int64

	// Date is when the answer was sent, in whole seconds of the guard's clock. It is zero
	// in an outage, in a decision that was stored, and if Client is not the SDK's own.
	Date time.Time

	// Guard is the name of the guard that was asked, without a prefix. It is not
	// part of a guard's answer. ReleaseDecision sends the release to it.
	Guard string

	// Subjects holds the subjects of the request. It is not part of a guard's answer.
	// What gives back or renews the action sends them again.
	Subjects map[string]string

	// Outage is an ErrOutage if the guard did not answer and Options.OnOutage
	// decided. Otherwise it is nil.
	Outage error
}

// A Limit is one of several limits of an activity, or of its subjects.
type Limit struct {
	Name          string
	Limit         int64
	ActivityCount int64
	Remaining     int64
	WaitTime      time.Duration
	ResetAt       time.Time
	Crossed       int64 // as in Decision, for this limit
}

// releasable reports whether the decision has the receipt of something that was
// granted. A delayed one has a receipt, but nothing was granted.
func (d *Decision) releasable() bool { return d.At != 0 && d.RequestID != "" && d.Granted > 0 }

// receipt returns a request to renew or give back n of the granted actions.
func (d *Decision) receipt(n int64) Request {
	return Request{UserID: d.UserID, Subjects: d.Subjects, At: d.At, RequestID: d.RequestID, Count: n}
}

// id returns what tells the decision from others of its client.
func (d *Decision) id() [3]string { return [3]string{d.asked(), d.UserID, d.RequestID} }

// asked returns the name by which a call asks the decision's guard again.
func (d *Decision) asked() string {
	if d.Guard == "" {
		return d.Activity
	}
	return d.Guard + "/" + d.Activity
}

// Wait sleeps until the refused request can pass, and a little longer so that
// many waiting callers don't come back together. Then it returns true. It
// returns at once if there is no wait: true if the decision allows the request,
// and otherwise false, for example in an outage. It also returns false at once if
// the wait would be longer than most, if an operator's block refused, and when ctx ends.
// Zero for most means 60 s.
func (d Decision) Wait(ctx context.Context, most time.Duration) bool {
	if most == 0 {
		most = time.Minute
	}
	switch {
	case d.WaitTime <= 0:
		return d.Allowed
	case d.WaitTime > most, d.Reason == Blocked:
		return false
	}
	jitter := max(d.WaitTime/10, 50*time.Millisecond)
	return sleep(ctx, d.WaitTime+rand.N(jitter))
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// MarshalJSON implements json.Marshaler. It writes the fields that the guard's
// answer has, and Guard and Subjects if they are set. It leaves out the outage.
func (d Decision) MarshalJSON() ([]byte, error) { return json.Marshal(d.wire()) }

// UnmarshalJSON implements json.Unmarshaler. It reads a guard's answer and
// ignores unknown fields.
func (d *Decision) UnmarshalJSON(b []byte) error {
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	*d = a.decision()
	return nil
}
