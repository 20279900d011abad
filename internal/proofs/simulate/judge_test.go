package simulate_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// judge compares an answer with what the ledger expects of it.
func (l *ledger) judge(o *op, d ratelimit.Decision, err error) {
	s := l.sim
	switch {
	case o.hasOddCount():
		l.judgeOddCount(o, d, err)
		return
	case o.request.UserID == spoiled:
		l.judgeSpoiled(o, d, err)
		return
	}
	o.learns()
	if err == nil && o.terms.Prepaid() {
		l.balanced(o, d)
	}
	if err == nil {
		l.told(o, d)
	}
	switch {
	case err != nil:
		if o.request.Fallback && !byReceipt(o.kind) && o.kind != ratelimit.Reset {
			s.fail("%s: %v, want a decision from memory", o.name, err)
		}
		return
	case d.Outage != nil:
		s.stats["decided from memory in an outage"]++
		l.judgeAlone(o, d)
		l.sameAlone(o)
		l.sameSeen(o)
		return
	case o.kind == ratelimit.Reset:
		o.in.forget(o)
		return
	case o.request.ReadyAt != 0 && d.Requests == 0 && d.Limit == 0:
		l.judgePlace(o, d)
		return
	case d.Leased:
		return
	case d.Requests == 0:
		l.judgeRepeat(o, d)
		return
	}
	s.reason(o, d)
	a := o.last
	switch {
	case d.Acquired:
		l.judgeFigures(o, d, a.figures, [2]int64{})
		return
	case o.terms.Prepaid(): // a refusal of a hot key is repeated for up to a second
		a.wait = [2]int64{-1}
	}
	switch o.kind {
	case ratelimit.Release:
		if a.must && !a.done {
			s.wrong("%s comes in time, and nothing was given back", o.name)
		}
		if !d.Allowed || d.Reason != ratelimit.OK {
			s.wrong("%s: %s, want ok", o.name, d.Reason)
		}
		l.judgeFigures(o, d, a.figures, [2]int64{})
		return
	case ratelimit.Renew:
		l.judgeRenew(o, d)
	case ratelimit.Status:
		l.judgeStatus(o, d)
	default:
		l.judgeCheck(o, d)
	}
	if d.Reason == ratelimit.Limited && !o.terms.Prepaid() && !o.skips() && s.chance(4) {
		l.judgeWait(o, d)
	}
}

// reason counts the reason of an answer.
func (s *sim) reason(o *op, d ratelimit.Decision) {
	s.stats["answers "+string(d.Reason)]++
	switch {
	case d.Outage != nil:
		s.had(o.request.Activity, "decision from memory")
	case d.Reason == ratelimit.Duplicate:
		s.had(o.request.Activity, "duplicate")
	}
}

// judgeCheck judges a check that the store has answered.
func (l *ledger) judgeCheck(o *op, d ratelimit.Decision) {
	s, a := l.sim, o.last
	mine := a.rec != nil && a.rec.by == o
	wait, skips := a.wait, o.skips()
	switch d.Reason {
	case ratelimit.OK:
		switch {
		case a.rec == nil, a.rec.n != d.Granted && a.rec.place == 0 && (mine || a.rec.by.request.Count == o.request.Count), !mine && !o.unsure:
			s.wrong("%s is told ok, granted %d, and the store has %s", o.name, d.Granted, a.rec)
		case a.rec.place > o.now:
			s.wrong("%s is told ok, and its place is at %d", o.name, a.rec.place)
		case d.At != 0 && (d.At != o.now || d.At != a.rec.check), d.At == 0 && mine && !o.unsure:
			s.wrong("%s comes at %d and has the receipt %d: the store has %s", o.name, o.now, d.At, a.rec)
		}
		if d.Granted == o.request.Count {
			wait = [2]int64{}
		}
	case ratelimit.Duplicate:
		if a.rec == nil || mine || o.unsure {
			s.wrong("%s is told duplicate, and the store has %s", o.name, a.rec)
		}
		wait = [2]int64{}
	case ratelimit.Delayed:
		if a.rec == nil || a.rec.place != d.ReadyAt || d.Wait.Milliseconds() != d.ReadyAt-o.now || d.Waiting != a.waiting && !skips || d.Allowed {
			s.wrong("%s is told to come at %d (%d waiting), want %d: the store has %s", o.name, d.ReadyAt, d.Waiting, a.waiting, a.rec)
		}
		wait = [2]int64{-1}
	case ratelimit.Limited:
		if a.rec != nil && a.known && !a.bare || a.surely && !skips || d.Granted != 0 {
			s.wrong("%s is told limited, granted %d; it fits: %v; the store has %s", o.name, d.Granted, a.surely, a.rec)
		}
	default:
		s.wrong("%s is told %s", o.name, d.Reason)
	}
	if d.Allowed != (d.Reason == ratelimit.OK || d.Reason == ratelimit.Duplicate) {
		s.wrong("%s: %s, and allowed is %v", o.name, d.Reason, d.Allowed)
	}
	if !skips {
		l.judgeFigures(o, d, a.figures, wait)
	}
	if a.done && mine {
		l.judgeLocks(o, d, a.figures)
	}
	if d.Allowed {
		l.admit(o)
	}
}

// String describes a record in a failure.
func (r *record) String() string {
	if r == nil {
		return "no count of it"
	}
	return fmt.Sprintf("a count of %d at %d by %s, place %d, counting at %d, renewed to %d: %v, over: %v, relied on: %v", r.n, r.check, r.by.name, r.place, r.counts, r.at, r.renewed, r.over, r.relied)
}

// judgeStatus judges a status that the store has answered.
func (l *ledger) judgeStatus(o *op, d ratelimit.Decision) {
	s, a := l.sim, o.last
	wait := a.wait
	if o.skips() {
		return
	}
	switch {
	case d.Reason == ratelimit.Duplicate:
		if a.rec == nil || a.rec.place > o.now {
			s.wrong("%s: a check would be a duplicate, and the store has %s", o.name, a.rec)
		}
		wait = [2]int64{}
	case a.known && !o.terms.Prepaid():
		if d.Reason != ratelimit.Delayed || d.ReadyAt != a.rec.place {
			s.wrong("%s: %s until %d, and the store has %s", o.name, d.Reason, d.ReadyAt, a.rec)
		}
		wait = [2]int64{-1}
	case d.Reason == ratelimit.Delayed:
		if a.next != d.ReadyAt && (a.rec == nil || a.rec.place != d.ReadyAt) || d.ReadyAt <= o.now {
			s.wrong("%s: a check would come at %d, want %d", o.name, d.ReadyAt, a.next)
		}
		wait = [2]int64{-1}
	case d.Allowed && !a.perhaps, !d.Allowed && a.surely, d.At != 0:
		s.wrong("%s: allowed %v, receipt %d; it fits: %v", o.name, d.Allowed, d.At, a.surely)
	case d.Allowed && o.request.Partial:
		wait = [2]int64{-1} // the wait after the grant
	case a.clock-o.now > 2000: // frozen: it is about a time that others have left behind
		wait = [2]int64{-1}
	}
	l.judgeFigures(o, d, a.figures, wait)
}

// judgeFigures compares the figures of an answer. Wait holds the shortest and the
// longest one; -1: any.
func (l *ledger) judgeFigures(o *op, d ratelimit.Decision, want []oracle.Figure, wait [2]int64) {
	s := l.sim
	each, several := d.Each, o.terms.Named()
	if !several {
		each = []policy.Reading{d.Reading}
		each[0].Each = nil
	}
	if len(each) != len(want) {
		s.wrong("%s: figures of %d limits, want %d", o.name, len(each), len(want))
		return
	}
	var longest time.Duration
	binding := false
	for i, r := range each {
		f := want[i]
		left := f.Left
		if r.Name != f.Name || r.Limit != f.Limit || r.Used < f.Used || r.Used > f.MaxUsed || r.WindowKey != f.Window || r.Locked != f.Locked ||
			r.ResetAt < min(f.Resets, f.LastResets) || r.ResetAt > max(f.Resets, f.LastResets) {
			s.wrong("%s: the figures are %+v, want %+v", o.name, r, f)
		}
		if several && r.Remaining == 0 {
			left = 0 // a clock ahead has begun the next window of a limit beside others
		}
		if r.Remaining > f.MaxLeft || r.Remaining < left {
			s.wrong("%s: %d remain, want %d to %d", o.name, r.Remaining, left, f.MaxLeft)
		}
		longest = max(longest, r.Wait)
		binding = binding || r.Name == d.Name && r.Used == d.Used && r.Limit == d.Limit
	}
	if !binding || several && d.Reason == ratelimit.Limited && d.LimitedBy != d.Name {
		s.wrong("%s: the figures %+v are of no limit, or not of the one that refuses (%s)", o.name, d.Reading, d.LimitedBy)
	}
	if got := longest.Milliseconds(); wait[0] >= 0 && (got < min(wait[0], wait[1]) || got > max(wait[0], wait[1])) {
		s.wrong("%s: the wait is %d ms, want %d to %d", o.name, got, wait[0], wait[1])
	}
}

// A frozen is a store that holds one item and never changes.
type frozen struct {
	ratelimit.Store

	key  ratelimit.Key
	item ratelimit.Item
}

func (f frozen) Read(_ context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	if k != f.key {
		return ratelimit.Item{}, nil
	}
	return f.item, nil
}

// judgeWait asks a copy of the state whether the wait is kept: the same request is
// allowed then, and refused a millisecond earlier.
func (l *ledger) judgeWait(o *op, d ratelimit.Decision) {
	l.sim.stats["waits that a copy of the state was asked about, at the time and a millisecond earlier"]++
	window, _ := o.terms.Item(o.now)
	item := o.last.item
	if u, _, ok := o.terms.Repace(o.now, item.State); ok { // by a status, or by a write that did not arrive
		item.State = u.Apply(item.State)
	}
	store := frozen{key: ratelimit.Key{UserID: o.request.UserID, Activity: cmp.Or(o.request.Group, o.request.Activity), Window: window}, item: item}
	for _, sooner := range []int64{0, 1} {
		at := o.now + d.Wait.Milliseconds() - sooner
		fork := ratelimit.Limiter{Store: store, Now: func() time.Time { return time.UnixMilli(at) }}
		r := o.request
		r.ID, r.ReadyAt = "another", 0
		got, err := fork.Decide(context.Background(), ratelimit.Status, r)
		if allowed := got.Allowed || got.Reason == ratelimit.Delayed; err != nil || allowed != (sooner == 0) {
			l.sim.wrong("%s is told to wait %v; %d ms before that a copy of the state answers %s, error %v", o.name, d.Wait, sooner, got.Reason, errors.Join(err))
		}
	}
}
