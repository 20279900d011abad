package client

import (
	"encoding/json"
	"strings"
	"time"
)

// An answer is a guard's answer as JSON. A pointer is nil if the answer does not
// have the field.
type answer struct {
	Allowed       bool          `json:"allowed"`
	Reason        Reason        `json:"reason"`
	UserID        string        `json:"userId"`
	Activity      string        `json:"activity"`
	Op            string        `json:"op"`
	Limit         int64         `json:"limit,omitzero"`
	ActivityCount *int64        `json:"activityCount,omitempty"`
	Remaining     *int64        `json:"remaining,omitempty"`
	WaitTime      *int64        `json:"waitTime,omitempty"` // milliseconds
	ResetAt       int64         `json:"resetAt,omitzero"`   // Unix milliseconds
	WindowKey     int64         `json:"windowKey,omitzero"`
	Granted       *int64        `json:"granted,omitempty"`
	At            int64         `json:"at,omitzero"`
	RequestID     string        `json:"requestId,omitzero"`
	HeldUntil     int64         `json:"heldUntil,omitzero"` // Unix milliseconds
	Message       string        `json:"message,omitzero"`
	Display       string        `json:"display,omitzero"`
	ReadyAt       int64         `json:"readyAt,omitzero"` // Unix milliseconds
	Enqueued      int64         `json:"enqueued,omitzero"`
	Crossed       int64         `json:"crossed,omitzero"`
	LimitedBy     string        `json:"limitedBy,omitzero"`
	Limits        []limitAnswer `json:"limits,omitempty"`

	// Only in a decision that an app stored.
	Guard    string            `json:"guard,omitzero"`
	Subjects map[string]string `json:"subjects,omitempty"`
}

type limitAnswer struct {
	Name          string `json:"name"`
	Limit         int64  `json:"limit"`
	ActivityCount int64  `json:"activityCount"`
	Remaining     int64  `json:"remaining"`
	WaitTime      int64  `json:"waitTime"`
	ResetAt       int64  `json:"resetAt"`
	Crossed       int64  `json:"crossed,omitzero"`
}

// decision returns the answer as a Decision.
func (a *answer) decision() Decision {
	d := Decision{
		Allowed: a.Allowed, Reason: a.Reason, UserID: a.UserID, Activity: a.Activity, Op: a.Op,
		Limit: a.Limit, ActivityCount: value(a.ActivityCount), Remaining: value(a.Remaining),
		WaitTime: millis(value(a.WaitTime)), ResetAt: moment(a.ResetAt), WindowKey: a.WindowKey,
		Granted: value(a.Granted), At: a.At, RequestID: a.RequestID, HeldUntil: moment(a.HeldUntil), Message: a.Message, Display: a.Display,
		ReadyAt: moment(a.ReadyAt), Enqueued: a.Enqueued, Crossed: a.Crossed, LimitedBy: a.LimitedBy, Guard: a.Guard, Subjects: a.Subjects,
	}
	for _, l := range a.Limits {
		d.Limits = append(d.Limits, Limit{l.Name, l.Limit, l.ActivityCount, l.Remaining, millis(l.WaitTime), moment(l.ResetAt), l.Crossed})
	}
	return d
}

// wire returns the answer from which decision makes d.
func (d *Decision) wire() *answer {
	a := &answer{
		Allowed: d.Allowed, Reason: d.Reason, UserID: d.UserID, Activity: d.Activity, Op: d.Op,
		Limit: d.Limit, ResetAt: unixMilli(d.ResetAt), WindowKey: d.WindowKey,
		At: d.At, RequestID: d.RequestID, HeldUntil: unixMilli(d.HeldUntil), Message: d.Message, Display: d.Display,
		ReadyAt: unixMilli(d.ReadyAt), Enqueued: d.Enqueued, Crossed: d.Crossed, LimitedBy: d.LimitedBy, Guard: d.Guard, Subjects: d.Subjects,
	}
	wait := d.WaitTime.Milliseconds()
	if d.Limit != 0 {
		a.ActivityCount, a.Remaining = &d.ActivityCount, &d.Remaining
	}
	if d.Limit != 0 || !d.ReadyAt.IsZero() || !d.ResetAt.IsZero() {
		a.WaitTime = &wait
	}
	if d.Op == "check" || d.Op == "renew" {
		a.Granted = &d.Granted
	}
	for _, l := range d.Limits {
		a.Limits = append(a.Limits, limitAnswer{l.Name, l.Limit, l.ActivityCount, l.Remaining, l.WaitTime.Milliseconds(), unixMilli(l.ResetAt), l.Crossed})
	}
	return a
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// moment returns the time of Unix milliseconds; 0 is the zero time.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// readAnswer reads an answer to the call. Anything without a boolean "allowed"
// is not a guard's answer.
func (c *call) readAnswer(payload []byte) (Decision, error) {
	var members map[string]json.RawMessage // encoding/json would also accept "Allowed"
	var a answer
	if json.Unmarshal(payload, &members) != nil || !isBool(members["allowed"]) || json.Unmarshal(payload, &a) != nil {
		return Decision{}, c.noAnswer(string(payload))
	}
	d := a.decision()
	d.Guard, d.Subjects = c.guard, c.event.Subjects
	return d, nil
}

func isBool(v json.RawMessage) bool { return string(v) == "true" || string(v) == "false" }

// decision returns a decision about the call that no guard wrote.
func (c *call) decision(reason Reason) Decision {
	return Decision{Reason: reason, UserID: c.event.UserID, Activity: c.event.Activity, Op: c.event.Op, Guard: c.guard}
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
		return Decision{}, c.validation(first(mostText, f.ErrorMessage)) // a guard never shows an id
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
