package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// A call is one invocation of a guard: its event and its answer. Fields that the
// event or the answer does not have are zero. Times are Unix milliseconds.
type call struct {
	function string
	from     string // fromConsole or fromApp
	at       int64  // when it came, by the guards' clock
	event    json.RawMessage
	reply    json.RawMessage // nil if the guard returned an error
	request  `json:"-"`
	answer   `json:"-"`
	err      string // the error's type and message; empty for an answer
	before   int64  // actions that counted before a release
}

// Who sent an event.
const (
	fromConsole = "console"
	fromApp     = "app"
)

// A request has the fields of an event that the console uses.
type request struct {
	UserID    string   `json:"userId"`
	Activity  string   `json:"activity"`
	Op        guard.Op `json:"op,omitempty"`
	Count     int64    `json:"count,omitempty"`
	Partial   bool     `json:"partial,omitempty"`
	Tier      string   `json:"tier,omitempty"`
	RequestID string   `json:"requestId,omitempty"`
	At        int64    `json:"at,omitempty"`
	ReadyAt   int64    `json:"readyAt,omitempty"`
}

// status returns the event that asks for the figures without counting. A release
// may have a count above the limit, but a status may not.
func (r request) status() []byte {
	if r.Op == guard.Release {
		r.Count = 1
	}
	return request{UserID: r.UserID, Activity: r.Activity, Op: guard.Status, Count: r.Count, Partial: r.Partial, Tier: r.Tier}.json()
}

// json returns the event as JSON.
func (r request) json() []byte {
	event, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts and numbers can always be written
	}
	return event
}

// An answer has the fields of a guard's answer that the console uses.
type answer struct {
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason"`
	Granted   int64  `json:"granted"`
	WaitTime  int64  `json:"waitTime"`
	Place     int64  `json:"readyAt"`
	Receipt   int64  `json:"at"`
	ReceiptID string `json:"requestId"`
	figures
	Limits []figures `json:"limits"`
}

// figures describe the count of one limit.
type figures struct {
	Name    string `json:"name"`
	Limit   int64  `json:"limit"`
	Used    int64  `json:"activityCount"`
	Left    int64  `json:"remaining"`
	ResetAt int64  `json:"resetAt"`
}

// mostKept is how much of an event is kept. Guards refuse longer ones, so the
// rest would only take memory.
const mostKept = 64 << 10

// newCall reads an event and its answer. Either of them can be the form of
// Lambda's Invoke API or the HTTP form of a Function URL.
func newCall(event, reply []byte, err error) call {
	var c call
	c.event, c.reply = event, reply
	var web events.LambdaFunctionURLRequest
	if json.Unmarshal(event, &web) == nil && web.RequestContext.HTTP.Method != "" {
		c.event = []byte(web.Body)
		if web.IsBase64Encoded {
			c.event, _ = base64.StdEncoding.DecodeString(web.Body)
		}
		var response events.LambdaFunctionURLResponse
		_ = json.Unmarshal(reply, &response)
		c.reply = []byte(response.Body)
	}
	if len(c.event) > mostKept {
		c.event = bytes.Clone(c.event[:mostKept])
	}
	_ = json.Unmarshal(c.event, &c.request) // a mistake in the event is the guard's to report
	if c.Op == "" {
		c.Op = guard.Check
	}
	c.Count = max(c.Count, 1)
	switch {
	case err != nil:
		c.reply, c.err = nil, invokeapi.ErrorType(err)+": "+err.Error()
	default:
		_ = json.Unmarshal(c.reply, &c.answer)
		var problem struct{ ErrorType, Detail string }
		if json.Unmarshal(c.reply, &problem) == nil && problem.ErrorType != "" {
			c.err = problem.ErrorType + ": " + problem.Detail
		}
	}
	return c
}

// counts reports whether the answer came from a decision on a count. An activity
// without a limit and a bypassed caller have no count.
func (c *call) counts() bool { return c.Limit > 0 }

// isRequest reports whether the call is a request as replay knows it: a check
// that was decided on a count, and no repeat of another one.
func (c *call) isRequest() bool {
	return c.Op == guard.Check && c.counts() && c.Reason != "duplicate"
}
