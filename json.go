package guards

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MarshalJSON implements [json.Marshaler]. It writes the fields that a guard's answer has,
// in their order.
func (d Decision) MarshalJSON() ([]byte, error) {
	o := object{append(make([]byte, 0, 512), '{')} // most answers have 300 to 400 bytes
	o.bool("allowed", d.Allowed)
	o.string("reason", string(d.Reason))
	o.string("userId", d.UserID)
	o.string("activity", d.Activity)
	o.string("op", string(d.Op))
	switch {
	case d.Limit != 0:
		o.figures(Figures{
			Limit: d.Limit, ActivityCount: d.ActivityCount, Remaining: d.Remaining,
			WaitTime: d.WaitTime, ResetAt: d.ResetAt, Locked: d.Locked,
		})
	case d.ReadyAt != 0, d.ResetAt != 0: // an early job, or a block
		o.int("waitTime", d.WaitTime)
		o.optionalInt("resetAt", d.ResetAt)
	}
	o.optionalInt("windowKey", d.WindowKey)
	if d.Op == Check || d.Op == Renew {
		o.int("granted", d.Granted)
	}
	o.optionalInt("at", d.At)
	o.optionalString("requestId", d.RequestID)
	o.optionalInt("heldUntil", d.HeldUntil)
	o.optionalString("message", d.Message)
	o.optionalString("display", d.Display)
	o.optionalInt("readyAt", d.ReadyAt)
	o.optionalInt("enqueued", d.Enqueued)
	o.optionalInt("crossed", d.Crossed)
	o.optionalString("limitedBy", d.LimitedBy)
	o.limits(d.Limits)
	o.optionalString("version", d.Version)
	return append(o.b, '}'), nil
}

// An object is a JSON object in progress. Its members keep the order of their additions. Only a
// text with escapes is written by reflection.
type object struct{ b []byte }

// limits adds the figures of each limit, if there are any.
func (o *object) limits(each []Figures) {
	if len(each) == 0 {
		return
	}
	o.name("limits")
	o.b = append(o.b, '[')
	for i, f := range each {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(o.b, '{')
		o.optionalString("name", f.Name)
		o.figures(f)
		o.optionalInt("crossed", f.Crossed)
		o.b = append(o.b, '}')
	}
	o.b = append(o.b, ']')
}

// figures adds what every limit has.
func (o *object) figures(f Figures) {
	o.int("limit", f.Limit)
	o.int("activityCount", f.ActivityCount)
	o.int("remaining", f.Remaining)
	o.int("waitTime", f.WaitTime)
	o.int("resetAt", f.ResetAt)
	if f.Locked {
		o.bool("locked", true)
	}
}

func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
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

// optionalInt adds v unless it is 0.
func (o *object) optionalInt(name string, v int64) {
	if v != 0 {
		o.int(name, v)
	}
}

func (o *object) string(name, v string) {
	o.name(name)
	if !strings.ContainsFunc(v, escaped) {
		o.b = append(append(append(o.b, '"'), v...), '"')
		return
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err == nil { // each string can be written
		o.b = append(o.b, strings.TrimSuffix(text.String(), "\n")...)
	}
}

// escaped reports whether JSON needs an escape for r, or whether r can stand for a byte that is
// not UTF-8.
func escaped(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError }

// optionalString adds v unless it is empty.
func (o *object) optionalString(name, v string) {
	if v != "" {
		o.string(name, v)
	}
}
