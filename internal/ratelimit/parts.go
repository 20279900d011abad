package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// A Part is one of several requests that together are one action. It is the user's
// request, or the request of another subject whose item counts the action, too.
type Part struct {
	Request
	Subject string // the subject's name, such as room; empty: the user
}

// minGiveBack of a decision's time is kept, or a fifth of it, to give back what it has counted.
const minGiveBack = 100 * time.Millisecond

// An action is a decision about several parts.
type action struct {
	limiter *Limiter
	parts   []member
	now     time.Time     // of all parts
	end     time.Time     // of the decision's time; zero: it has no end
	kept    time.Duration // before the end, to give back what the parts have counted
	reached bool          // the store has answered, or this decision has less than its whole time for it
}

// A member is a part of an action, and how far it is decided.
type member struct {
	question question
	known    Known // when the decision began
	decision Decision
}

// Decide carries out op for r. If the store gives no usable answer, the error is a
// *StoreError. With r.Fallback and a Memory, a check and a status are then decided
// from memory, without an error. Any other error names a field that is out of range.
func (l *Limiter) Decide(ctx context.Context, op Op, r Request) (Decision, error) {
	return l.DecideAll(ctx, op, []Part{{Request: r}}, false)
}

// DecideAll decides an action that several parts count: all of them count it, or none.
// The parts are in order from the narrowest to the widest. The decision
// has the figures of each limit of each part. Its own are the figures of the limit with
// the longest wait: of the part that refuses first, or for a status and with readOn of
// all parts. The decision about one part has the figures as its policy names them.
//
// It asks the memory about all parts first, so a refusal that is known costs no request.
// Then it decides one part after the other, all at one reading of the clock. If one
// refuses or fails, it gives back what this decision has counted in the parts before it.
// After a refusal, with readOn, it reads the later parts and counts nothing, so that the
// decision has their figures. If all parts admit, it marks each one that another attempt
// of the same request has counted, see claim.
//
// If the process stops between two parts, the earlier ones keep a count that nobody used.
// So they can admit too few, and never too many.
func (l *Limiter) DecideAll(ctx context.Context, op Op, parts []Part, readOn bool) (Decision, error) {
	a := action{limiter: l, parts: make([]member, len(parts)), now: l.Clock()}
	for i := range parts {
		r := parts[i].Request
		if err := r.validate(op); err != nil {
			return Decision{}, err
		}
		r.Shared = r.Shared || len(parts) > 1
		a.parts[i].question = r.ask(op, a.now.UnixMilli())
		a.parts[i].known = l.recall(&a.parts[i].question)
	}
	err := a.carryOut(ctx, op, readOn || op == Status)
	d := a.parts[0].decision
	if len(parts) > 1 {
		d = total(parts, a.parts, err == nil && (readOn && op == Check || op == Status))
	}
	for _, p := range parts {
		if until := p.Policy.HeldUntil(d.At); d.At != 0 && until != 0 && (d.HeldUntil == 0 || until < d.HeldUntil) {
			d.HeldUntil = until
		}
	}
	return d, err
}

// begin starts the time of the decision, for all its requests together. If the caller's time
// ends earlier, giving back goes on after it. The caller must call stop.
func (a *action) begin(ctx context.Context) (whole context.Context, stop func()) {
	timeout := a.limiter.Timeout
	if timeout == 0 || a.limiter.NewBudget != nil {
		return ctx, func() {}
	}
	a.kept = min(max(minGiveBack, timeout/5), timeout/2)
	a.end = time.Now().Add(timeout)
	if other, ok := ctx.Deadline(); ok && other.Add(a.kept).Before(a.end) {
		a.end = other.Add(a.kept)
	}
	return context.WithDeadline(ctx, a.end)
}

// carryOut decides all parts.
func (a *action) carryOut(ctx context.Context, op Op, readOn bool) error {
	next, refused := 0, false
	for i := range a.parts {
		q := &a.parts[i].question
		if d, ok := q.due(); ok {
			a.parts[i].decision = d
			return nil
		}
		if d, ok := a.parts[i].known.refuse(q, a.now); ok {
			a.parts[i].decision, next, refused = d, i+1, true
			break
		}
	}
	if refused && (!readOn || next == len(a.parts)) {
		return nil
	}
	ctx, stop := a.begin(ctx)
	defer stop()
	if !refused {
		if err := a.allow(ctx); err != nil {
			return err
		}
	}
	switch op {
	case Release:
		return a.release(ctx)
	case Renew:
		return a.renew(ctx)
	case Check, Status, Reset:
	}
	return a.check(ctx, next, refused, readOn)
}

// decide decides part i. It has all of the time, as long as no count may have to be given
// back.
func (a *action) decide(ctx context.Context, i int) error {
	if a.kept > 0 && a.reached && i > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, a.end.Add(-a.kept))
		defer stop()
	}
	return a.ask(ctx, i)
}

// ask decides part i, or marks it if it relies on its claim.
func (a *action) ask(ctx context.Context, i int) error {
	m := &a.parts[i]
	m.question.reached = a.reached
	d, err := a.limiter.decide(ctx, &m.question)
	a.reached = m.question.reached
	requests := m.decision.Requests + d.Requests
	if err != nil || d.Reason != "" { // otherwise it is marked, and nothing else has changed
		m.decision = d
	}
	m.decision.Requests = requests
	return err
}

// allow looks at the circuits of these parts, before anything is sent. It sends a probe for
// the first part whose circuit is due, and for no other. Then it bars each part whose
// circuit is open. The error comes from a part that must not be decided from memory. A release
// goes on without such a part.
//
// If each part looked at its circuit when its turn comes, each request for a room that does
// not answer would count its user first, and wait.
func (a *action) allow(ctx context.Context) error {
	l := a.limiter
	probe := -1
	for i := range a.parts {
		q := &a.parts[i].question
		q.looked = !l.Memory.leased(q) && (q.op != Renew || q.Policy.HasLog())
		if !q.looked {
			continue // a lease decides, or no slot can be renewed
		}
		cause, due := l.breaker.look(q.write.Key, a.now)
		switch {
		case cause == nil:
		case due && probe < 0:
			probe = i
		case q.strict() && !due:
			return cause
		}
	}
	if probe >= 0 {
		a.probe(ctx, probe)
	}
	for i := range a.parts {
		q := &a.parts[i].question
		if q.looked && q.barred == nil {
			q.barred, _ = l.breaker.look(q.write.Key, a.now)
		}
		if q.barred != nil && q.strict() {
			return q.barred
		}
	}
	return nil
}

// strict reports whether nothing is decided if the item of q is out of reach.
func (q *question) strict() bool { return !q.Fallback && q.op != Release }

// probe probes the circuit of part i, unless another decision does.
func (a *action) probe(ctx context.Context, i int) {
	l, q := a.limiter, &a.parts[i].question
	if !l.breaker.claim(q.write.Key, l.Clock()) {
		return
	}
	a.parts[i].decision.Requests++
	q.barred = l.probe(ctx, q)
	a.reached = q.barred == nil || errors.Is(q.barred, errProbe) // perhaps it was answered, and too late
}

// check decides a check or a status from part next on. Refused: an earlier part has refused
// from memory.
func (a *action) check(ctx context.Context, next int, refused, readOn bool) error {
	for i := next; i < len(a.parts) && (!refused || readOn); i++ {
		if refused {
			a.parts[i].question.op = Status
		}
		err := a.decide(ctx, i)
		if refused || err == nil && a.parts[i].decision.Allowed {
			continue
		}
		if a.giveBack(ctx); err != nil {
			return err
		}
		refused = true
	}
	if refused || a.parts[0].question.op != Check {
		return nil
	}
	return a.rely(ctx)
}

// rely marks each part that another decision has counted. It begins with the widest, so
// that the user is marked last: if a part refuses what has to be counted again, no mark
// keeps the user's count.
func (a *action) rely(ctx context.Context) error {
	for i := len(a.parts) - 1; i >= 0; i-- {
		q := &a.parts[i].question
		if !q.Shared || !q.claim.isFound() {
			continue
		}
		a.limiter.recall(q)
		q.relies = true
		if err := a.ask(ctx, i); err != nil || !a.parts[i].decision.Allowed {
			a.giveBack(ctx)
			return err
		}
	}
	return nil
}

// giveBack gives back what this decision has counted.
func (a *action) giveBack(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if !a.end.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, a.end)
		defer stop()
	}
	for i := range a.parts {
		if d := a.parts[i].decision; d.Allowed {
			a.parts[i].decision = a.limiter.unclaim(ctx, &a.parts[i].question, d)
		}
	}
}

// slots returns the numbers of the parts with slots, and of the others.
func (a *action) slots() (with, without []int) {
	for i := range a.parts {
		if a.parts[i].question.Policy.HasLog() {
			with = append(with, i)
		} else {
			without = append(without, i)
		}
	}
	return with, without
}

// release gives back a check in each part. It begins with slots, because their items know
// when a check came that was renewed. The other parts know the check by that time. If one of
// these fails, the others are still given back: one busy address must not lock the accounts of
// all behind it.
func (a *action) release(ctx context.Context) (failed error) {
	with, without := a.slots()
	from := origin{}
	for _, i := range append(with, without...) {
		q := &a.parts[i].question
		if from.at != 0 && !q.Policy.HasLog() {
			q.At = from.at
			q.write = q.ask(Release, a.now.UnixMilli()).write
		}
		q.origin = from
		switch err := a.decide(ctx, i); {
		case err == nil:
			from = q.origin
		case q.Policy.HasLog():
			return err
		default:
			failed = cmp.Or(failed, err)
		}
	}
	return failed
}

// renew moves the slots of a check to now, all to the same time. If several parts have
// slots, it reads all of them first, and moves none if one is gone. If one goes in between,
// it frees those that it has moved.
func (a *action) renew(ctx context.Context) error {
	with, _ := a.slots()
	for _, look := range []bool{true, false} {
		if look && len(with) == 1 {
			continue
		}
		to := int64(0)
		for n, i := range with {
			q := &a.parts[i].question
			q.look, q.read, q.to = look, !look && len(with) > 1, to
			if err := a.decide(ctx, i); err != nil {
				return err
			}
			if d := a.parts[i].decision; !d.Allowed {
				if !look {
					a.free(ctx, with[:n])
				}
				return nil
			}
			if !look { // a slot can be gone now that was not at the time of the others' last renewal
				to = max(to, a.parts[i].decision.At)
			}
		}
	}
	return nil
}

// free gives back the slots of these parts, which this decision has renewed.
func (a *action) free(ctx context.Context, parts []int) {
	for _, i := range parts {
		r, d := a.parts[i].question.Request, &a.parts[i].decision
		r.At = d.At
		q := r.ask(Release, a.now.UnixMilli())
		q.slotsOnly, q.reached = true, a.reached
		a.limiter.recall(&q)
		back, err := a.limiter.decide(ctx, &q)
		if d.Requests += back.Requests; err == nil {
			d.Reading = back.Reading
		}
	}
}
