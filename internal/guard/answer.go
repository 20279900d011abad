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
	Display  string              // the limit and its use in words; empty where it has no label
	Message  string              // for the person at the other end; refused, in whole or part
}

// Refused says whether a check was refused: a status never is.
func (a *Answer) Refused() bool { return a.Op == Check && !a.Allowed }

// delayed says whether the request has to come again at its place, which may be
// one on this instance's memory.
func (a *Answer) delayed() bool { return !a.Allowed && a.Decision != nil && a.Decision.ReadyAt != 0 }

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
		appendFigures(o, d)
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
	if a.Display != "" {
		o.string("display", a.Display)
	}
	if d := a.Decision; d != nil {
		appendPlaces(o, d)
		appendLimits(o, d)
	}
}

func appendFigures(o *object, d *ratelimit.Decision) {
	if d.Limit != 0 {
		o.int("limit", d.Limit)
		o.int("activityCount", d.Used)
		o.int("remaining", d.Remaining)
	}
	if d.Limit != 0 || d.ReadyAt != 0 {
		o.int("waitTime", d.Wait.Milliseconds())
	}
	if d.Limit != 0 {
		o.int("resetAt", d.ResetAt)
	}
	if d.WindowKey != 0 {
		o.int("windowKey", d.WindowKey)
	}
}

func appendPlaces(o *object, d *ratelimit.Decision) {
	if d.ReadyAt != 0 {
		o.int("readyAt", d.ReadyAt)
	}
	if d.Enqueued != 0 {
		o.int("enqueued", d.Enqueued)
	}
}

// appendLimits adds each of several limits, and which of them refused.
func appendLimits(o *object, d *ratelimit.Decision) {
	if d.LimitedBy != "" {
		o.string("limitedBy", d.LimitedBy)
	}
	if len(d.Each) == 0 {
		return
	}
	each := make([][]byte, len(d.Each))
	for i, l := range d.Each {
		one := newObject()
		one.string("name", l.Name)
		one.int("limit", l.Limit)
		one.int("activityCount", l.Used)
		one.int("remaining", l.Remaining)
		one.int("waitTime", l.Wait.Milliseconds())
		one.int("resetAt", l.ResetAt)
		each[i] = one.end()
	}
	o.rawArray("limits", each...)
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
