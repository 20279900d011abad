package client

import (
	"encoding/json"
	"strings"

	"github.com/cric-talk/guards"
)

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
