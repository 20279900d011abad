package explore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A lent is what a visit of an instance took of a prepaid limit.
type lent struct {
	by, limit uint8
	cost      int64
	item      int64 // its number
	left      int64 // actions that were not handed out yet
	until     int64 // when the lease ends
}

// leased is the id of what is counted or handed out without one.
const leased = 254

// heat notes whether an item has so many ids that leases may begin.
func (l *ledger) heat(x *explorer, item uint32) {
	n := 0
	for _, marks := range x.items.at(item).IDs {
		n += len(marks)
	}
	l.hot = l.hot || x.crowd > 0 && n >= x.crowd
}

// visited notes a visit that the store performed. A key that is not busy has none, and what
// a visit takes counts as any other action. A visit that is late is lost.
func (x *explorer) visited(l *ledger, w written) error {
	item := int64(x.number(w.write.Key))
	p := x.policyOf(int(item), w.limit)
	if !l.hot || !p.Prepaid() {
		return fmt.Errorf("%s is counted without an id, and the key is not busy", name(w.slot))
	}
	e := entry{id: leased, writer: uint8(w.slot), item: item, now: w.write.Now, at: receiptOf(p, w), ms: w.ms, limit: w.limit, forgotten: true}
	now, cost := max(w.write.Now, e.at), unitsOf(w.call.Policy, 1)
	e.n = (counts(p, now, w.after)[0] - counts(p, now, w.before)[0]) / cost[0]
	if e.n < 1 || e.n < w.call.Count && !w.call.Partial {
		return fmt.Errorf("%s of %d takes %d", name(w.slot), w.call.Count, e.n)
	}
	e.left = unitsOf(w.call.Policy, e.n)
	l.entries = append(l.entries, e)
	if w.inFlight>>w.slot&1 == 1 {
		until, _ := p.Lease(w.write.Now)
		l.lent = append(l.lent, lent{w.by, w.limit, cost[0], item, e.n, until})
	}
	return x.promised(l.entries, e)
}

// handedOut requires that an instance hands out only what its own visits took of this limit,
// before the lease ends. What gets through in all, at the time when it does, is within the
// limit, and so is what this instance hands out beside what it admits alone.
func (x *explorer) handedOut(e *ending) error {
	d, l := e.result, e.ledger
	if !d.Allowed || d.Reason != ratelimit.OK || d.At != 0 || d.Leased == (e.ask.attempts > 0) || d.Granted != e.call.Count && !e.call.Partial {
		return fmt.Errorf("this is no answer from a lease")
	}
	n, cost := d.Granted, unitsOf(e.call.Policy, 1)[0]
	for i := range l.lent {
		if o := &l.lent[i]; o.by == e.proc.by && o.limit == e.proc.limit && o.cost == cost && o.item == e.item && o.until > e.now {
			taken := min(n, o.left)
			o.left, n = o.left-taken, n-taken
		}
	}
	if n > 0 {
		return fmt.Errorf("%d more than its visits took: %v", n, l.lent)
	}
	l.lent = slices.DeleteFunc(l.lent, func(o lent) bool { return o.left == 0 })
	by := e.proc.by
	out := entry{id: leased, writer: uint8(e.slot), item: e.item, n: d.Granted, left: unitsOf(e.call.Policy, d.Granted), at: e.now, now: e.now, limit: e.proc.limit}
	l.alone[by] = append(l.alone[by], out)
	if err := x.promised(l.alone[by], out); err != nil {
		return fmt.Errorf("beside what it admits alone, %w", err)
	}
	var through []entry
	for _, c := range slices.Concat(l.entries, l.alone[0], l.alone[1]) {
		counted := slices.ContainsFunc(l.entries, func(k entry) bool { return k == c })
		if counted != (c.id == leased) {
			through = append(through, c)
		}
	}
	slices.SortStableFunc(through, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	return x.promised(through, out)
}

// prepaid returns the kinds that can be prepaid, so full that few actions are left. The
// limits have more than a hundred, as prepaid ones must.
func prepaid() []subject {
	return []subject{
		{kinds: "fixed prepaid", text: "125/10s prepaid", prefill: 123, lowered: "124/10s prepaid", raised: "126/10s prepaid"},
		{kinds: "sliding prepaid", text: "sliding 125/10s prepaid", prefill: 123, lowered: "sliding 124/10s prepaid", raised: "sliding 126/10s prepaid"},
		{kinds: "bucket prepaid", text: "bucket 1/1s burst 126 prepaid", prefill: 123, lowered: "bucket 1/1s burst 125 prepaid", raised: "bucket 1/1s burst 127 prepaid"},
		{kinds: "fixed prepaid and bucket prepaid", text: "a: 125/10s prepaid, b: bucket 1/1s burst 128 prepaid", prefill: 123, lowered: "a: 124/10s prepaid, b: bucket 1/1s burst 127 prepaid", raised: "a: 126/10s prepaid, b: bucket 1/1s burst 129 prepaid"},
		{kinds: "fixed prepaid", text: "250/10s prepaid", dear: "250/10s cost 2 prepaid", prefill: 246},
	}
}

// hotKeys are scenarios of a prepaid key that is busy after the first request, or after the
// second one if nothing is counted before. One action more than the prefill fits, or three.
var hotKeys = []scenario{
	{[]request{one, one, one}, 0},
	{[]request{one, one, one}, -1},
	{[]request{one, again, one}, -1},
	{[]request{both, some, one}, -2},
	{[]request{one, one, again}, -123},
	{[]request{one, undo, again}, 0},
	{[]request{one, both, one}, -1},
	{[]request{one, one, wipe}, -2},
}

var moments = []int64{0, 999, 1000} // until a lease of a bucket has ended

var apartByOne = []time.Duration{0, time.Second}
