package ratelimit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A Part is one of several requests that together are one action: that of the user, or
// that of another subject in whose item the action counts, too.
type Part struct {
	Request
	Subject string // the subject's name, such as room; empty: the user
}

// ask returns the question that p puts at now. With Hold, a log alone keeps its id, too: by
// it, a release finds that its receipt is that of a renewal.
func (p *Part) ask(op Op, now int64) question {
	q := p.Request.ask(op, now)
	q.write.Hold = p.Hold
	return q
}

const (
	givingBack = 100 * time.Millisecond // of a decision's time is kept to give back what the parts before a refusal have counted
	mostParts  = 4                      // of an action, so that their questions stay on the stack
)

// DecideAll decides an action that several parts count: all of them count it, or none.
// There are at most four parts, in order from the narrowest to the widest. The decision
// has the figures of each limit of each part, and those of the tightest.
//
// It asks the memory about all parts first, so a refusal that is known costs no request.
// Then it decides one part after the other, all at one reading of the clock. If one
// refuses, it gives back what the parts before it have counted. If one fails, it does so
// only if the id is Fresh. After a refusal, with readOn, it reads the later parts and
// counts nothing, so that the decision has their figures.
//
// A part that an earlier decision has counted, or that was decided from memory, keeps
// its count, because another attempt of the same request may rely on it. If the process
// stops between two parts, the earlier ones keep a count that nobody used. So they can
// admit too few, and never too many.
func (l *Limiter) DecideAll(ctx context.Context, op Op, parts []Part, readOn bool) (Decision, error) {
	now := l.Clock()
	questions, known := make([]question, 0, mostParts), make([]Known, 0, mostParts)
	decisions := make([]Decision, mostParts)[:len(parts)]
	for i := range parts {
		if err := parts[i].validate(op); err != nil {
			return Decision{}, err
		}
		questions = append(questions, parts[i].ask(op, now.UnixMilli()))
		known = append(known, l.recall(&questions[i]))
	}
	next, refused, renewed := 0, false, int64(0)
	for i := range parts {
		if d, ok := known[i].refuse(&questions[i], now); ok {
			decisions[i], next, refused = d, i+1, true
			break
		}
	}
	ctx, end, stop := l.divide(ctx)
	defer stop()
	for _, i := range order(op, parts)[next:] {
		q := &questions[i]
		switch {
		case refused && !readOn && op != Status:
			return merge(parts, decisions), nil
		case refused && op == Check:
			q.op = Status
		case q.skips(renewed):
			continue
		}
		q.to = renewed
		d, err := l.decide(ctx, q, known[i], now)
		decisions[i], renewed = d, max(d.At, q.to)
		if !refused && q.givesBack(d, err) {
			l.giveBack(ctx, end, now, parts[next:i], decisions[next:])
		}
		if err != nil && !refused {
			return merge(parts, decisions), err
		}
		refused = refused || !d.Allowed
	}
	return merge(parts, decisions), nil
}

// divide returns the context of a decision's parts, and when giving back ends: it has what
// is left, and at least givingBack. Zero: it has no end. The caller must call stop.
func (l *Limiter) divide(ctx context.Context) (parts context.Context, end time.Time, stop func()) {
	if l.Timeout == 0 {
		return ctx, end, func() {}
	}
	end = time.Now().Add(l.Timeout)
	if other, ok := ctx.Deadline(); ok && other.Add(givingBack).Before(end) {
		end = other.Add(givingBack)
	}
	parts, stop = context.WithTimeout(ctx, l.Timeout-min(givingBack, l.Timeout/2))
	return parts, end, stop
}

// order returns the numbers of the parts in the order in which they are decided. A release
// begins with slots, because they show whether its receipt is that of a renewal.
func order(op Op, parts []Part) []int {
	numbers := make([]int, len(parts))
	for i := range parts {
		numbers[i] = i
	}
	if op == Release {
		slices.SortStableFunc(numbers, func(a, b int) int { return cmp.Compare(parts[b].Policy.HeldUntil(0), parts[a].Policy.HeldUntil(0)) })
	}
	return numbers
}

// givesBack reports whether the parts before q give back what they have counted: q refuses,
// or fails and has an id that nobody else knows. If the id is the caller's, another attempt
// may have been admitted meanwhile, and rely on it.
func (q *question) givesBack(d Decision, err error) bool {
	return q.op == Check && (err == nil && !d.Allowed || err != nil && q.Fresh)
}

// skips reports whether q leaves a part without slots alone: a renewal always does, and a
// release does if those of another part were renewed.
func (q *question) skips(renewed int64) bool {
	return q.Policy.HeldUntil(0) == 0 && (q.op == Renew || q.op == Release && renewed > lost)
}

// giveBack releases what parts have counted by a decision at this time, until end. A part
// without a receipt keeps its count.
func (l *Limiter) giveBack(ctx context.Context, end, at time.Time, parts []Part, decisions []Decision) {
	ctx = context.WithoutCancel(ctx)
	if !end.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, end)
		defer stop()
	}
	for i, p := range parts {
		d := &decisions[i]
		if d.Leased || d.Visit {
			q := p.ask(Check, at.UnixMilli())
			l.Memory.putBack(&q)
		}
		if p.At = d.At; p.At == 0 {
			continue
		}
		now := l.Clock()
		q := p.ask(Release, now.UnixMilli())
		q.mine = true
		back, err := l.decide(ctx, &q, l.recall(&q), now) // if it fails, too few are admitted
		if d.Requests += back.Requests; err == nil {
			d.Reading = back.Reading
		}
		d.At = 0
	}
}

// merge returns the decision about all parts from those about each, in which a part
// that was not asked is zero. The reason is unavailable if a part was decided from
// memory, that of the refusal if one refused, and duplicate if all are. There is a
// receipt if it is the same for all.
func merge(parts []Part, decisions []Decision) (all Decision) {
	all.Allowed = true
	binding, at := -1, int64(-1)
	for i, d := range decisions {
		all.Requests += d.Requests
		if d.Reason == "" {
			continue
		}
		first := len(all.Each)
		for _, r := range d.Limits() {
			if r.Name = parts[i].limit(r.Name); binding < 0 || all.Allowed && r.Binds(all.Each[binding]) {
				binding = len(all.Each)
			}
			all.Each = append(all.Each, r)
		}
		switch {
		case !all.Allowed: // after a refusal, others only have figures
		case !d.Allowed:
			all.Allowed, all.Reason, all.LimitedBy, all.Granted = false, d.Reason, parts[i].limit(d.Name), d.Granted
			binding = first + slices.IndexFunc(d.Limits(), func(r policy.Reading) bool { return r.Name == d.Name })
		case first == 0:
			all.Reason, all.Granted = d.Reason, d.Granted
		case all.Reason == Duplicate:
			all.Reason = d.Reason
		}
		switch {
		case d.Leased, d.Visit: // the receipt is about the other parts
			all.Leased, all.Visit = all.Leased || d.Leased, all.Visit || d.Visit
		case at < 0:
			at = d.At
		case at != d.At:
			at = 0
		}
		all.Outage = cmp.Or(d.Outage, all.Outage)
	}
	if all.Outage != nil {
		all.Reason = Unavailable
	}
	if !all.Allowed {
		uncross(all.Each)
	}
	if binding >= 0 {
		each := all.Each
		all.Reading = each[binding]
		all.Each, all.WindowKey = each, 0
	}
	if all.At = max(0, at); !all.Allowed {
		all.At = 0
	}
	return all
}

// uncross removes what the parts before a refusal have crossed.
func uncross(each []policy.Reading) {
	for i := range each {
		each[i].Crossed = 0
	}
}

// limit returns the name that a limit of p has in a decision about all parts, such as
// room.minute. The only limit of a part has the name of the subject or the activity.
func (p Part) limit(name string) string {
	switch {
	case p.Subject == "":
		return cmp.Or(name, p.Activity)
	case name == "":
		return p.Subject
	}
	return p.Subject + "." + name
}
