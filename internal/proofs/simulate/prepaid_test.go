package simulate_test

import (
	"cmp"
	"slices"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// smallCrowd is from how many ids on the key of a prepaid limit is hot here.
const smallCrowd = 4

// A balance is what an instance took of a user's prepaid limits. An action that it took is
// handed out once, or it is left, or it is lost for good.
type balance struct {
	taken, handed map[*terms]int64
	lost          int64
	at            map[int64]int64 // when the last visit counts, by the window of its item
}

func (in *instance) balanceOf(of owner) *balance {
	b, ok := in.balances[of]
	if !ok {
		b = &balance{taken: map[*terms]int64{}, handed: map[*terms]int64{}, at: map[int64]int64{}}
		in.balances[of] = b
	}
	return b
}

// visited notes a write without an id, which can count more than its request asks for.
func (l *ledger) visited(u *user, a *landing, w ratelimit.Write, before ratelimit.Item) {
	s, o := l.sim, a.op
	n, at, err := u.Counts(o.terms.numbers, w.Now, before.State, a.item.State)
	switch {
	case err != nil:
		s.wrong("%s: %v: %+v changes %v", o.name, err, w.Update, before.State)
	case !o.terms.Prepaid() || n < 1: // fewer than it asks for, if the instance has held the rest
		s.wrong("%s asks for %d, and the store counts %d without an id", o.name, o.request.Count, n)
	case !u.FitsAt(o.terms.numbers, at, n, false):
		s.wrong("%s: the store counts %d, which do not fit: %v", o.name, n, u)
	}
	if err := u.Count(o.terms.numbers, at, n); err != nil {
		s.wrong("%s: %v", o.name, err)
	}
	a.took, a.at = n, at
	s.line("the store counts %d by a visit of %s", n, o.name)
}

// balanced judges what an instance has handed out of its leases.
func (l *ledger) balanced(o *op, d ratelimit.Decision) {
	s, b := l.sim, o.in.balanceOf(o.owner())
	if d.Visit {
		s.stats["writes that took a lease of a prepaid limit"]++
	}
	if d.Visit || d.Leased {
		b.handed[o.terms] += d.Granted
		if o.whole != nil {
			s.stats["actions that a room's lease gave"]++
		} else if d.At != 0 || d.Reason != ratelimit.OK || d.Granted != o.request.Count || d.Leased && d.Requests > 0 {
			s.fail("%s: %+v is no answer from a lease", o.name, d)
		}
	}
	if d.Leased {
		s.stats["checks decided from a lease"]++
	}
	if b.handed[o.terms] > b.taken[o.terms] {
		s.fail("%s: instance %d hands out %d of %d that it took for this limit", o.name, o.in.number, b.handed[o.terms], b.taken[o.terms])
	}
	left, _ := o.in.limiter.Memory.Recall(o.item()).Held(o.in.millis())
	lost := -left
	for t, n := range b.taken {
		lost += n - b.handed[t]
	}
	switch {
	case s.subjects(): // a decision under way can hold some of it, and give it back
		if lost < 0 {
			s.fail("%s: instance %d has handed out or holds %d more than it took", o.name, o.in.number, -lost)
		}
		b.lost = lost
	case lost < b.lost:
		s.fail("%s: instance %d had lost %d actions of its leases, and now %d", o.name, o.in.number, b.lost, lost)
	}
	s.stats["actions of leases that nobody got"] += int(max(0, lost-b.lost))
	b.lost = lost
	if o.kind == ratelimit.Check && d.Reason == ratelimit.OK && !s.far {
		at := max(o.now, d.At)
		counted, _ := o.terms.Item(o.now)
		switch {
		case d.Visit: // a clock ahead can have begun the window in which it counts
			at = max(at, o.last.at)
			b.at[counted] = at
		case d.Leased:
			at = max(at, b.at[counted])
		case o.last.rec != nil:
			at = max(at, o.last.rec.at)
		}
		l.tell(o, d, at)
	}
}

// item returns the key of the item that counts for o now.
func (o *op) item() ratelimit.Key {
	window, _ := o.terms.Item(o.in.millis())
	return ratelimit.Key{UserID: o.request.UserID, Activity: cmp.Or(o.request.Group, o.request.Activity), Window: window}
}

// A spending is what callers were told that they may do under one limit, in units.
type spending struct {
	counts map[int64]int64 // by the number of the window
	full   int64           // when a bucket is full again
	latest int64           // when the latest action counts; a frozen instance tells of earlier ones
	ids    map[string]bool
}

// tell requires that callers are never told more than the limit: in a window, in a sliding
// window, or in a bucket. Clocks that are 2 s apart stretch the last two.
func (l *ledger) tell(o *op, d ratelimit.Decision, at int64) {
	u := l.user(o.owner())
	if u.void {
		return
	}
	for _, r := range o.terms.Rates() {
		name := o.terms.text + r.Name
		p, ok := u.spent[name]
		if !ok {
			p = &spending{counts: map[int64]int64{}, ids: map[string]bool{}}
			u.spent[name] = p
		}
		if p.ids[o.id] && d.At == 0 && !d.Leased && !d.Visit {
			continue // a repeat
		}
		p.ids[o.id] = true
		w := oracle.WindowsOf(r)
		p.latest = max(p.latest, at)
		key, window, n := w.Key(at), r.Window.Milliseconds(), d.Granted*oracle.Cost(r)
		p.counts[key] += n
		p.full = max(p.full, at) + n*oracle.Interval(r)
		got, most := p.counts[key], r.Limit
		switch r.Kind {
		case "sliding":
			key = w.Key(p.latest)
			got = p.counts[key] + p.counts[key-1]*max(0, window-p.latest%window-2000)/window
		case "bucket":
			got, most = (p.full-p.latest-2000)/oracle.Interval(r), r.Burst
		}
		if got > most {
			l.sim.wrong("%s: callers were told that they may do %d of %s, want at most %d", o.name, got, name, most)
		}
	}
}

// unsay notes that n actions of a check were given back.
func (l *ledger) unsay(u *user, check *op, at, n int64) {
	for _, r := range check.terms.Rates() {
		if p, ok := u.spent[check.terms.text+r.Name]; ok && p.ids[check.id] {
			p.counts[oracle.WindowsOf(r).Key(at)] -= n * oracle.Cost(r)
			p.full -= n * oracle.Cost(r) * oracle.Interval(r)
		}
	}
}

// prepaid reports whether the run has prepaid limits.
func (s *sim) prepaid() bool {
	return slices.ContainsFunc(s.activities, func(a limits.Activity) bool {
		return slices.ContainsFunc(a.Parts(), func(p limits.Subject) bool { return p.Limit.Prepaid() || p.For(premium).Prepaid() })
	})
}
