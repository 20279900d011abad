package client

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/cric-talk/guards"
)

// A Reason is why a decision turned out as it did.
type Reason = guards.Reason

// The reasons.
const (
	OK          = guards.OK
	Limited     = guards.Limited
	Delayed     = guards.Delayed
	Unlimited   = guards.Unlimited
	Bypassed    = guards.Bypassed
	Shadow      = guards.Shadow
	Duplicate   = guards.Duplicate
	Unavailable = guards.Unavailable // with Decision.Outage, decided without the guard
	Expired     = guards.Expired
	Blocked     = guards.Blocked
)

// A Decision is a guard's answer, with what the client knows beside it. As JSON, it is the
// guard's answer with Guard, Subjects and Asked, so an app can store it and give it back later.
type Decision struct {
	guards.Decision

	// Date is when the answer was sent, by the guard's clock; a function or an agent tells it in
	// whole seconds. It is zero in an outage, in a decision that was stored, and if Client is not
	// the SDK's own.
	Date time.Time `json:"-"`

	// Guard is the name of the guard that was asked, without a prefix. ReleaseDecision
	// sends the release to it.
	Guard string `json:"guard,omitzero"`

	// Subjects holds the subjects of the request. What gives back or renews the action
	// sends them again.
	Subjects map[string]string `json:"subjects,omitempty"`

	// Asked holds what else of the request chose the limits. What gives back or renews the
	// action sends it again.
	Asked Asked `json:"asked,omitzero"`

	// Outage is an ErrOutage if the guard did not answer and OnOutage decided, or if the
	// request's own OnOutage refused what the guard's memory allowed. Otherwise it is nil.
	Outage error `json:"-"`
}

// Asked is what a request said about its limits. Most callers never need this type.
type Asked struct {
	Limit Numbers `json:"limit,omitempty"`
	Tier  string  `json:"tier,omitzero"`
}

// releasable reports whether the decision has the receipt of something that was
// granted. A delayed one has a receipt, but nothing was granted.
func (d *Decision) releasable() bool { return d.At != 0 && d.RequestID != "" && d.Granted > 0 }

// receipt returns a request to renew or give back n of the granted actions.
func (d *Decision) receipt(n int64) Request {
	return Request{UserID: d.UserID, Subjects: d.Subjects, Tier: d.Asked.Tier, Limit: d.Asked.Limit, At: d.At, RequestID: d.RequestID, Count: n}
}

// id returns what tells the decision from others of its client.
func (d *Decision) id() [3]string { return [3]string{d.path(), d.UserID, d.RequestID} }

// path returns the name that a call uses to ask the decision's guard again.
func (d *Decision) path() string {
	if d.Guard == "" {
		return d.Activity
	}
	return d.Guard + "/" + d.Activity
}

// Wait sleeps until the refused request can pass, and a little longer so that
// many waiting callers don't come back together. Then it returns true. It
// returns at once if there is no wait, and in shadow mode: true if the decision
// allows the request, and otherwise false, for example in an outage. It also
// returns false at once if the wait would be longer than maxWait, if an operator's
// block refused, and when ctx ends.
// A refusal by a Limit that is too low for the request has no wait, so it returns false.
// Zero for maxWait means 60 s.
func (d Decision) Wait(ctx context.Context, maxWait time.Duration) bool {
	if maxWait == 0 {
		maxWait = time.Minute
	}
	wait := d.RetryAfter()
	switch {
	case wait <= 0, d.Reason == Shadow:
		return d.Allowed
	case wait > maxWait, d.Reason == Blocked:
		return false
	}
	jitter := max(wait/10, 50*time.Millisecond)
	return sleep(ctx, wait+rand.N(jitter))
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

// MarshalJSON implements [json.Marshaler]. It writes the guard's answer, and Guard, Subjects
// and Asked if they are set.
func (d Decision) MarshalJSON() ([]byte, error) {
	answer, err := d.Decision.MarshalJSON()
	if err != nil {
		return nil, err
	}
	more, err := json.Marshal(struct {
		Guard    string            `json:"guard,omitzero"`
		Subjects map[string]string `json:"subjects,omitempty"`
		Asked    Asked             `json:"asked,omitzero"`
	}{d.Guard, d.Subjects, d.Asked})
	if err != nil || string(more) == "{}" {
		return answer, err
	}
	return append(append(bytes.TrimSuffix(answer, []byte("}")), ','), bytes.TrimPrefix(more, []byte("{"))...), err
}

// readAnswer reads an answer to the call. Anything without a boolean "allowed"
// is not a guard's answer.
func (c *call) readAnswer(payload []byte) (Decision, error) {
	var members map[string]json.RawMessage // encoding/json would also accept "Allowed"
	var answer guards.Decision
	if json.Unmarshal(payload, &members) != nil || !isBool(members["allowed"]) || json.Unmarshal(payload, &answer) != nil {
		return Decision{}, c.noAnswer(string(payload))
	}
	return c.asked(answer), nil
}

func isBool(v json.RawMessage) bool { return string(v) == "true" || string(v) == "false" }

// asked returns d with what the call has asked.
func (c *call) asked(d guards.Decision) Decision {
	return Decision{Decision: d, Guard: c.guard, Subjects: c.event.Subjects, Asked: Asked{c.event.Limit, c.event.Tier}}
}

// decision returns a decision about the call that no guard wrote.
func (c *call) decision(reason Reason) Decision {
	return c.asked(guards.Decision{Reason: reason, UserID: c.event.UserID, Activity: c.event.Activity, Op: c.event.Op})
}

// A failure is a function error, or what a guard's problem has in its place.
type failure struct {
	ErrorType    string `json:"errorType"`
	ErrorMessage string `json:"errorMessage"`
}

// readFailure returns what a function error means. Kind is used if the error
// has no type.
func (c *call) readFailure(payload []byte, kind string) (Decision, error) {
	var f failure
	_ = json.Unmarshal(payload, &f) // a payload of another form has no type
	message := c.foreign(f.ErrorMessage)
	switch {
	case f.ErrorType == "ValidationError":
		return Decision{}, c.validation(first(maxText, f.ErrorMessage)) // a guard never shows an id
	case f.ErrorType == "Unavailable":
		return Decision{}, c.unavailable(message)
	case f.ErrorType == "Sandbox.Timedout", f.ErrorType == "" && strings.Contains(f.ErrorMessage, "Task timed out after"):
		return Decision{}, c.outage("the function timed out", nil)
	case f.ErrorType == "RateLimitExceeded": // a guard with ON_LIMIT=error
		d := c.decision(Limited)
		d.Message = f.ErrorMessage // for the user
		return d, nil
	case f.ErrorType != "":
		kind = f.ErrorType
	}
	return Decision{}, c.answer("failed: %s. Its log says why.", c.foreign(kind))
}
