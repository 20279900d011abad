package simulate_test

import (
	"cmp"
	"slices"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// smallCrowd is from how many ids on the key of a prepaid limit is hot here.
const smallCrowd = 4

// A balance is what an instance took of a user's prepaid limits. An action that it took is
// handed out once, or it is left, or it is lost for good.
type balance struct {
	taken, handed map[*terms]int64
	lost          int64      // for good
	judged        int64      // when lost was last looked at, by the clock of the instance
	ends          []leaseEnd // of the leases that can have ended since lost was last known
	leases        []lent
	at            map[int64]int64 // when the last visit counts, by the window of its item
}

// A leaseEnd is when a lease ends. One that lasts for longer than the second of a bucket's is
// forgotten after 10 s without a visit.
type leaseEnd struct {
	at        int64
	forgotten bool // it can be
}

// A lent is until when an instance can hand out what it took for a limit. A visit that is
// answered late changes nothing for the window after its own.
type lent struct {
	policy policy.Policy
	window int64 // of the item
	until  int64
}

func (in *instance) balanceOf(of owner) *balance {
	b, ok := in.balances[of]
	if !ok {
		b = &balance{taken: map[*terms]int64{}, handed: map[*terms]int64{}, at: map[int64]int64{}}
		in.balances[of] = b
	}
	return b
}

// takes notes that a visit of o took n actions, and that its instance has the answer now. "What is
// left stays, until the earlier end of two leases" (docs/adr/0020-prepaid.md).
func (b *balance) takes(o *op, n int64) {
	ends, rest, lasting := o.terms.numbers.LeaseEnds(o.now), int64(0), 0
	b.taken[o.terms] += n
	b.ends = append(b.ends, leaseEnd{max(o.in.millis(), ends), ends > o.now+1000})
	window, _ := o.terms.Item(o.now)
	for _, l := range b.leases {
		if l.window == window && l.until > o.now {
			lasting++
		}
	}
	if o.whole == nil && lasting == 1 { // otherwise it is not known of which lease it is
		rest, _ = o.in.limiter.Memory.Recall(o.item()).Held(o.now)
	}
	l := b.leaseOf(o)
	if rest > o.holding && l.until > o.now {
		ends = min(ends, l.until)
	}
	l.until = ends
}

// leaseOf returns the lease of o's limit and window.
func (b *balance) leaseOf(o *op) *lent {
	window, _ := o.terms.Item(o.now)
	i := slices.IndexFunc(b.leases, func(l lent) bool { return l.window == window && l.policy.Same(o.request.Policy) })
	if i < 0 {
		i, b.leases = len(b.leases), append(b.leases, lent{policy: o.request.Policy, window: window})
	}
	return &b.leases[i]
}

// visited notes a write without an id, which can count more than its request asks for.
func (l *ledger) visited(u *user, a *landing, w ratelimit.Write, before ratelimit.Item) {
	s, o := l.sim, a.op
	n, when, err := u.Counts(o.terms.numbers, w.Now, before.State, a.item.State)
	switch {
	case err != nil:
		s.wrong("%s: %v: %+v changes %v", o.name, err, w.Update, before.State)
	case !o.terms.Prepaid() || n < 1: // fewer than it asks for, if the instance has held the rest
		s.wrong("%s asks for %d, and the store counts %d without an id: %+v changes %v to %v", o.name, o.request.Count, n, w, before.State, a.item.State)
	case !u.FitsAt(o.terms.numbers, when, n, false):
		s.wrong("%s: the store counts %d, which do not fit: %v", o.name, n, u)
	}
	if err := u.CountAt(o.terms.numbers, when, n); err != nil {
		s.wrong("%s: %v", o.name, err)
	}
	a.took, a.at = n, when.Counts
	s.line("the store counts %d by a visit of %s", n, o.name)
}

// balanced judges what an instance has handed out of its leases.
func (l *ledger) balanced(o *op, d ratelimit.Decision) {
	s, b := l.sim, o.in.balanceOf(o.owner())
	if d.Acquired {
		s.stats["writes that took a lease of a prepaid limit"]++
	}
	if d.Acquired || d.Leased {
		b.handed[o.terms] += d.Granted
		if o.whole != nil {
			s.stats["actions that a room's lease gave"]++
		} else if d.At != 0 || d.Reason != ratelimit.OK || d.Granted != o.request.Count || d.Leased && d.Requests > 0 {
			s.fail("%s: %+v is no answer from a lease", o.name, d)
		}
	}
	if d.Leased {
		s.stats["checks decided from a lease"]++
		if until := b.leaseOf(o).until; o.now >= until {
			s.fail("%s: instance %d hands out at %d, and its lease has ended at %d", o.name, o.in.number, o.now, until)
		}
	}
	if b.handed[o.terms] > b.taken[o.terms] {
		s.fail("%s: instance %d hands out %d of %d that it took for this limit", o.name, o.in.number, b.handed[o.terms], b.taken[o.terms])
	}
	left, _ := o.in.limiter.Memory.Recall(o.item()).Held(o.in.millis())
	lost := -left
	for t, n := range b.taken {
		lost += n - b.handed[t]
	}
	if s.subjects() { // a decision under way can hold some of it, and give it back
		if lost < 0 {
			s.fail("%s: instance %d has handed out or holds %d more than it took", o.name, o.in.number, -lost)
		}
		return
	}
	lent := o.lent()
	forGood, ended := lost-lent, func(end leaseEnd) bool { return end.at <= o.in.millis() }
	gone := func(end leaseEnd) bool { return ended(end) || end.forgotten }
	s.stats["actions of leases that nobody got"] += int(max(0, forGood-b.lost))
	switch {
	case o.in.millis() < b.judged, l.user(o.owner()).void: // a lease that had ended lasts again, or a visit under way holds what a reset has cleared
		b.lost = forGood
	case lost < b.lost:
		s.fail("%s: instance %d had lost %d actions of its leases, and now %d", o.name, o.in.number, b.lost, lost)
	case forGood > b.lost && !slices.ContainsFunc(b.ends, gone):
		s.fail("%s: instance %d has lost %d actions of its leases, and none has ended: %+v", o.name, o.in.number, forGood-b.lost, b.ends)
	}
	if b.lost, b.judged = max(b.lost, forGood), o.in.millis(); lent == 0 {
		b.ends = slices.DeleteFunc(b.ends, ended)
	}
}

// lent returns the most that visits which are under way beside o can hold of leases. "A request
// for more than is left takes only the rest from the item" (docs/adr/0020-prepaid.md), so such a
// visit holds what is left. If the lease ends before the answer to the visit, that is not lost
// yet: the check was decided before, and gets it. That "never more than the limit gets through"
// (docs/policies.md) is judged by told, at the time of the check.
func (o *op) lent() (most int64) {
	for _, other := range o.in.sim.begun {
		if other.in == o.in && !other.ended && other.owner() == o.owner() {
			most += other.holding
		}
	}
	return most
}

// mayHold returns the most that o, which begins now, can hold of a lease: what is left, if that
// is too little for o.
func (o *op) mayHold() int64 {
	if o.kind != ratelimit.Check || !o.terms.Prepaid() || len(o.parts) > 0 {
		return 0
	}
	left, _ := o.in.limiter.Memory.Recall(o.item()).Held(o.now)
	return min(left, o.request.Count-1)
}

// told notes what a caller was told who may act, if the run has prepaid limits. Ordinary
// checks count in the same items, by a tier or a live limit.
func (l *ledger) told(o *op, d ratelimit.Decision) {
	if o.kind != ratelimit.Check || d.Reason != ratelimit.OK || l.sim.far || !l.sim.prepaid() {
		return
	}
	b, at := o.in.balanceOf(o.owner()), max(o.now, d.At)
	counted, _ := o.terms.Item(o.now)
	switch {
	case d.Acquired: // a clock ahead can have begun the window that counts it
		at = max(at, o.last.at)
		b.at[counted] = at
	case d.Leased:
		at = max(at, b.at[counted])
	case o.terms.Prepaid() && o.last.rec != nil:
		at = max(at, o.last.rec.counts)
	case o.terms.Prepaid():
	case o.last == nil || o.last.rec == nil || o.last.rec.by != o:
		return // found: an earlier decision has counted it
	default:
		at = o.last.rec.counts
	}
	l.tell(o, d, at)
}

// item returns the key of the item that counts for o now.
func (o *op) item() ratelimit.Key {
	window, _ := o.terms.Item(o.in.millis())
	return ratelimit.Key{UserID: o.request.UserID, Activity: cmp.Or(o.request.Group, o.request.Activity), Window: window}
}

// A spending is what callers were told that they may do under one limit, in units, whatever
// tier or live limit told them.
type spending struct {
	counts map[int64]int64 // by the number of the window
	most   map[int64]int64 // by the number of the window: the highest limit that counted in it
	poured []poured        // from a bucket, in the order of their times
	every  int64           // the shortest interval of the bucket so far
	pace   int64           // its interval at the last action
	paces  int64           // how often that one was another than before, the first included
	burst  int64           // its highest burst so far
	back   int64           // what was given back to it, which may have come back before
	latest int64           // when the latest action counts; a frozen instance tells of earlier ones
	ids    map[string]bool
}

// tell requires that callers are never told more than the limit, or than the highest one
// that was in force: in a window, in a sliding window, or in a bucket. Clocks that are
// apart stretch the last two.
func (l *ledger) tell(o *op, d ratelimit.Decision, at int64) {
	u := l.user(o.owner())
	if u.void {
		return
	}
	for _, r := range o.terms.Rates() {
		if r.Kind == "log" || r.Kind == "reservoir" || r.Kind == "lockout" {
			continue // the store is judged by this limit, exactly
		}
		p, ok := u.spent[r.Name]
		if !ok {
			p = &spending{counts: map[int64]int64{}, most: map[int64]int64{}, ids: map[string]bool{}}
			u.spent[r.Name] = p
		}
		if p.ids[o.id] && d.At == 0 && !d.Leased && !d.Acquired {
			continue // a repeat
		}
		p.ids[o.id] = true
		w := oracle.WindowsOf(r)
		p.latest = max(p.latest, at)
		key, window, n := w.Key(at), r.Window.Milliseconds(), d.Granted*oracle.Cost(r)
		p.counts[key] += n
		p.most[key] = max(p.most[key], r.Limit)
		got, most := p.counts[key], p.most[key]
		switch r.Kind {
		case "sliding":
			key = w.Key(p.latest)
			got = p.counts[key] + p.counts[key-1]*max(0, window-p.latest%window-l.sim.apart)/window
			most = max(p.most[key-1], p.most[key])
		case "bucket":
			p.paced(r)
			got, most = p.pour(at, n)-p.paces*l.sim.apart/p.every, p.burst+p.back
		}
		if got > most {
			l.sim.wrong("%s: callers were told that they may do %d of %s %s, want at most %d", o.name, got, o.terms.text, r.Name, most)
		}
	}
}

// paced notes that a bucket has counted at the pace of r. What is in use is converted by the
// clock at hand.
func (p *spending) paced(r policy.Rate) {
	every := oracle.Interval(r)
	if p.pace != every {
		p.pace, p.paces = every, p.paces+1
	}
	p.every, p.burst = min(cmp.Or(p.every, every), every), max(p.burst, r.Burst)
}

// pacedBy notes the paces of a check that the store has counted. Perhaps its caller is told
// something else.
func (u *user) pacedBy(t *terms) {
	for _, r := range t.Rates() {
		if p, ok := u.spent[r.Name]; ok && r.Kind == "bucket" {
			p.paced(r)
		}
	}
}

// A poured is how many units of a bucket an action took; less than 0: it gave them back.
type poured struct{ at, n int64 }

// pour notes n units of a bucket. It returns the most that were ever in use, if they come
// back at the shortest interval so far.
func (p *spending) pour(at, n int64) (used int64) {
	i, _ := slices.BinarySearchFunc(p.poured, at+1, func(one poured, at int64) int { return cmp.Compare(one.at, at) })
	p.poured = slices.Insert(p.poured, i, poured{at, n})
	full := int64(0)
	for _, one := range p.poured {
		if one.n > 0 {
			full = max(full, one.at)
		}
		full += one.n * p.every
		used = max(used, (full-one.at)/p.every)
	}
	return used
}

// unsay notes that these limits gave back n actions of check, where they count by the receipt.
// A release "needs at and requestId from the check's answer" (docs/events.md). With another time
// of the same seconds, which no check has, that is perhaps the window after the check's.
func (u *user) unsay(check *op, gave []policy.Rate, at, n int64) {
	for _, r := range gave {
		if p, ok := u.spent[r.Name]; ok && p.ids[check.id] {
			p.counts[oracle.WindowsOf(r).Key(at)] -= n * oracle.Cost(r)
			if r.Kind == "bucket" {
				p.pour(at, -n*oracle.Cost(r))
				p.back += n * oracle.Cost(r)
			}
		}
	}
}

// prepaid reports whether the run has prepaid limits.
func (s *sim) prepaid() bool {
	return slices.ContainsFunc(s.activities, func(a limits.Activity) bool {
		return slices.ContainsFunc(a.Parts(), func(p limits.Subject) bool { return p.Limit.Prepaid() || p.For(premium).Prepaid() })
	})
}
