package guard

import (
	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// An Answer is a guard's answer to a request.
type Answer struct {
	Request
	Allowed  bool
	Reason   ratelimit.Reason
	Decision *ratelimit.Decision // the figures; nil if the caller is exempt
	Granted  int64               // how many of Count were taken; status: would be taken; renew: were renewed
	Display  string              // for example "12-hour pins: 93/100"; empty if the activity has no label
	Message  string              // for the end user, if the request was refused in whole or part; otherwise empty
	Version  string              // status: the release of Guards; empty if it is not known
}

// Refused reports whether a check was refused. A status is never refused.
func (a *Answer) Refused() bool { return a.Op == guards.Check && !a.Allowed }

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

// Public returns the answer in the words that apps read. A block counts nothing, and has only
// its end. A job that presents its place early or on time is decided without the table. Such
// an answer has no figures, except the wait if the job is early.
func (a *Answer) Public() guards.Decision {
	p := guards.Decision{
		Allowed: a.Allowed, Reason: a.Reason, UserID: a.UserID, Activity: a.Activity, Op: a.Op,
		Message: a.Message, Display: a.Display, Version: a.Version,
	}
	if a.Op == guards.Check || a.Op == guards.Renew {
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
	p.HeldUntil, p.WindowKey, p.ReadyAt, p.Enqueued, p.Crossed, p.LimitedBy = d.HeldUntil, d.WindowKey, d.ReadyAt, d.Waiting, d.Crossed, d.LimitedBy
	for _, l := range d.Each {
		p.Limits = append(p.Limits, FiguresOf(l))
	}
	return p
}

// JSON returns the answer as an object, in the words that apps read.
func (a *Answer) JSON() []byte {
	b, _ := a.Public().MarshalJSON() // each of its fields can be written
	return b
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
