package guard

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/strictjson"
)

// An Answer is a guard's answer to a request.
type Answer struct {
	Request
	Allowed   bool
	Reason    ratelimit.Reason
	Decision  *ratelimit.Decision // the figures; nil if the caller is exempt
	Granted   int64               // how many of Count were taken; status: would be taken; renew: were renewed
	Display   string              // for example "12-hour pins: 93/100"; empty if the activity has no label
	HeldUntil int64               // check and renew of a log, with a receipt: when its actions stop counting, in Unix milliseconds; else 0
	Message   string              // for the end user, if the request was refused in whole or part; otherwise empty
	Version   string              // status: the release of Guards; empty if it is not known
}

// Refused reports whether a check was refused. A status is never refused.
func (a *Answer) Refused() bool { return a.Op == Check && !a.Allowed }

// short reports whether fewer actions were granted than asked for.
func (a *Answer) short() bool { return a.Granted < a.Count && a.Reason != ratelimit.Duplicate }

// blocked reports whether an operator's block decided, also in shadow mode.
func (a *Answer) blocked() bool { return a.Decision != nil && a.Decision.Reason == ratelimit.Blocked }

// tooLow reports whether a number that the caller gave refused, so that no wait helps.
func (a *Answer) tooLow() bool {
	return a.Decision != nil && a.Decision.Reason == ratelimit.Limited && a.Decision.Limit == 0
}

// delayed reports whether the request was refused now and has a place for
// later. It looks at the place and not at the reason, because the reason is
// "unavailable" if memory gave the place in an outage.
func (a *Answer) delayed() bool { return !a.Allowed && a.Decision != nil && a.Decision.ReadyAt != 0 }

// Public returns the answer in the words that apps read. Its JSON is the same as
// AppendJSON's.
func (a *Answer) Public() guards.Decision {
	p := guards.Decision{
		Allowed: a.Allowed, Reason: a.Reason, UserID: a.UserID, Activity: a.Activity, Op: a.Op,
		HeldUntil: a.HeldUntil, Message: a.Message, Display: a.Display, Version: a.Version,
	}
	if a.Op == Check || a.Op == Renew {
		p.Granted = a.Granted
	}
	d := a.Decision
	if d == nil {
		return p
	}
	if d.At != 0 {
		p.At, p.RequestID = d.At, a.RequestID
	}
	switch {
	case d.Limit != 0:
		f := FiguresOf(d.Reading)
		p.Limit, p.ActivityCount, p.Remaining, p.WaitTime, p.ResetAt = f.Limit, f.ActivityCount, f.Remaining, f.WaitTime, f.ResetAt
		p.Locked = f.Locked
	case d.Reason == ratelimit.Blocked:
		p.WaitTime, p.ResetAt = d.Wait.Milliseconds(), d.ResetAt
	case d.ReadyAt != 0:
		p.WaitTime = d.Wait.Milliseconds()
	}
	p.WindowKey, p.ReadyAt, p.Enqueued, p.Crossed, p.LimitedBy = d.WindowKey, d.ReadyAt, d.Waiting, d.Crossed, d.LimitedBy
	for _, l := range d.Each {
		p.Limits = append(p.Limits, FiguresOf(l))
	}
	return p
}

// LimitsOf returns the figures of each limit of d. A decision about one limit without a name
// has them in its own fields.
func LimitsOf(d guards.Decision) []guards.Figures {
	if len(d.Limits) > 0 {
		return d.Limits
	}
	return []guards.Figures{{Limit: d.Limit, ActivityCount: d.ActivityCount, Remaining: d.Remaining, ResetAt: d.ResetAt}}
}

// FiguresOf returns the figures of one limit in the words that apps read.
func FiguresOf(r policy.Reading) guards.Figures {
	return guards.Figures{
		Name: r.Name, Limit: r.Limit, ActivityCount: r.Used, Remaining: r.Remaining,
		WaitTime: r.Wait.Milliseconds(), ResetAt: r.ResetAt, Locked: r.Locked, Crossed: r.Crossed,
	}
}

// AppendJSON appends the answer as one JSON object.
func (a *Answer) AppendJSON(b []byte) []byte {
	o := object{append(slices.Grow(b, 512), '{')} // most answers have 300 to 400 bytes
	a.appendFields(&o)
	return o.end()
}

// appendFields adds the answer's fields in the order of the contract.
func (a *Answer) appendFields(o *object) {
	d := a.Decision
	if d == nil {
		d = new(ratelimit.Decision) // no figures
	}
	o.bool("allowed", a.Allowed)
	o.string("reason", string(a.Reason))
	o.string("userId", a.UserID)
	o.string("activity", a.Activity)
	o.string("op", string(a.Op))
	appendFigures(o, d)
	if a.Op == Check || a.Op == Renew {
		o.int("granted", a.Granted)
	}
	if d.At != 0 {
		o.int("at", d.At)
		o.string("requestId", a.RequestID)
	}
	o.optional("heldUntil", a.HeldUntil)
	if a.Message != "" {
		o.string("message", a.Message)
	}
	if a.Display != "" {
		o.string("display", a.Display)
	}
	o.optional("readyAt", d.ReadyAt)
	o.optional("enqueued", d.Waiting)
	o.optional("crossed", d.Crossed)
	if d.LimitedBy != "" {
		o.string("limitedBy", d.LimitedBy)
	}
	appendLimits(o, d.Each)
	if a.Version != "" {
		o.string("version", a.Version)
	}
}

// appendFigures adds the figures of the count. A block counts nothing, and has only its
// end. A job that presents its place early or on time is decided without the table. Such
// an answer has no figures, except the wait if the job is early.
func appendFigures(o *object, d *ratelimit.Decision) {
	switch {
	case d.Limit != 0:
		o.reading(d.Reading)
	case d.Reason == ratelimit.Blocked:
		o.int("waitTime", d.Wait.Milliseconds())
		o.int("resetAt", d.ResetAt)
	case d.ReadyAt != 0:
		o.int("waitTime", d.Wait.Milliseconds())
	}
	o.optional("windowKey", d.WindowKey)
}

// appendLimits adds the figures of each limit, if there are several.
func appendLimits(o *object, limits []policy.Reading) {
	if len(limits) == 0 {
		return
	}
	each := make([][]byte, len(limits))
	for i, l := range limits {
		one := newObject()
		one.string("name", l.Name)
		one.reading(l)
		one.optional("crossed", l.Crossed)
		each[i] = one.end()
	}
	o.rawArray("limits", each...)
}

// reading adds the figures of one limit.
func (o *object) reading(r policy.Reading) {
	o.int("limit", r.Limit)
	o.int("activityCount", r.Used)
	o.int("remaining", r.Remaining)
	o.int("waitTime", r.Wait.Milliseconds())
	o.int("resetAt", r.ResetAt)
	if r.Locked {
		o.bool("locked", true)
	}
}

// An object is a JSON object in progress. Its members keep the order of their
// additions, and no reflection is needed to write them.
type object struct{ b []byte }

// newObject begins an object. Max have 100 to 250 bytes.
func newObject() *object { return &object{append(make([]byte, 0, 256), '{')} }

// end returns the finished object.
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

// optional adds v unless it is 0.
func (o *object) optional(name string, v int64) {
	if v != 0 {
		o.int(name, v)
	}
}

// string adds a string, which must be UTF-8. The decoder refused all others.
func (o *object) string(name, v string) {
	o.name(name)
	o.b, _ = strictjson.AppendQuote(o.b, v)
}

// raw adds a value that is already JSON.
func (o *object) raw(name string, v []byte) {
	o.name(name)
	o.b = append(o.b, v...)
}

// rawArray adds an array of values that are already JSON.
func (o *object) rawArray(name string, values ...[]byte) {
	o.name(name)
	o.b = append(append(append(o.b, '['), bytes.Join(values, []byte{','})...), ']')
}
