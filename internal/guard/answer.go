package guard

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// An Answer is what a guard says of a request.
type Answer struct {
	Request
	Allowed  bool
	Reason   ratelimit.Reason
	Decision *ratelimit.Decision // the figures; nil where nothing is counted
	Granted  int64               // check: how many of Count were taken
	Message  string              // for the person at the other end; refused, in whole or part
}

// Refused says whether a check was refused: a status never is.
func (a *Answer) Refused() bool { return a.Op == Check && !a.Allowed }

// AppendJSON appends the answer as one JSON object.
func (a *Answer) AppendJSON(b []byte) []byte {
	o := object{append(b, '{')}
	a.appendFields(&o)
	return o.end()
}

func (a *Answer) appendFields(o *object) {
	o.bool("allowed", a.Allowed)
	o.string("reason", string(a.Reason))
	o.string("userId", a.UserID)
	o.string("activity", a.Activity)
	o.string("op", string(a.Op))
	if d := a.Decision; d != nil {
		o.int("limit", d.Limit)
		o.int("activityCount", d.Used)
		o.int("remaining", d.Remaining)
		o.int("waitTime", d.Wait.Milliseconds())
		o.int("resetAt", d.ResetAt)
		o.int("windowKey", d.WindowKey)
	}
	if a.Op == Check {
		o.int("granted", a.Granted)
	}
	if d := a.Decision; d != nil && d.At != 0 {
		o.int("at", d.At)
		o.string("requestId", a.RequestID)
	}
	if a.Message != "" {
		o.string("message", a.Message)
	}
}

// An object is a JSON object under way: without reflection, and in the order
// of the contract.
type object struct{ b []byte }

func newObject() *object { return &object{[]byte{'{'}} }

func (o *object) end() []byte { return append(o.b, '}') }

func (o *object) name(name string) {
	if last := o.b[len(o.b)-1]; last != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) bool(name string, v bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) int(name string, v int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) string(name, v string) {
	o.name(name)
	// Every text here is UTF-8: what is not was refused, or is ours.
	o.b, _ = jsontext.AppendQuote(o.b, v)
}

// raw adds a value that is JSON already.
func (o *object) raw(name string, v []byte) {
	o.name(name)
	o.b = append(o.b, v...)
}

// rawArray adds an array of values that are JSON already.
func (o *object) rawArray(name string, values ...[]byte) {
	o.name(name)
	o.b = append(o.b, '[')
	o.b = append(o.b, bytes.Join(values, []byte{','})...)
	o.b = append(o.b, ']')
}
