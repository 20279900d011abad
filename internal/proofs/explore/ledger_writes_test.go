package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A written is an update that the store performed, or refused.
type written struct {
	slot          int
	item          int64 // its number
	limit, by     uint8
	call          ratelimit.Request
	write         ratelimit.Write
	before, after policy.State
	ms            int64 // the true time, in ms after the edge
	inFlight      uint8 // the slots whose decisions are in flight
	replied       uint8 // the ones among them whose answer is on its way
}

// counts returns how many units a read shows of each limit.
func counts(p *rules, now int64, s policy.State) []int64 {
	r := p.Read(now, 0, s)
	if len(r.Each) == 0 {
		return []int64{r.Used * max(1, p.Rates()[0].Cost)}
	}
	used := make([]int64, len(r.Each))
	for i, each := range r.Each {
		used[i] = each.Used * max(1, p.Rates()[i].Cost)
	}
	return used
}

// counted notes a check that the store performed. It returns what is wrong with
// that.
func (x *explorer) counted(l *ledger, w *written) error {
	item := w.item
	p, own := x.policyOf(int(item), x.version(w.slot), w.limit), x.policyOf(int(item), w.slot, w.limit)
	id := x.idOf(w.slot)
	visits := w.write.ID == ratelimit.ID{}
	if visits {
		id = visit
	}
	if slices.ContainsFunc(l.back, func(r receipt) bool { return r.id == id && r.item == item }) && w.slot == x.first(w.slot) {
		x.excuse(countedAfterRelease)
	}
	if !visits && l.live(id, item, w.ms, func(entry) bool { return true }) {
		return fmt.Errorf("%s is counted twice", name(w.slot))
	}
	switch bit := uint8(1) << w.slot; {
	case l.refused&bit == 0 || visits:
	case l.excused&bit == 0:
		return fmt.Errorf("%s is counted after it was told limited, and nothing was released since", name(w.slot))
	default:
		x.excuse(countedAfterRefusal)
	}
	e := entry{
		id: id, writer: uint8(w.slot), item: item, n: 1, now: w.write.Now, at: w.write.Now, counted: p.CountedAt(w.write.Now, w.after), ms: w.ms, whole: w.write.KeepAll, hold: x.hold && (p.Named() || !p.HasLog()),
		place: w.write.Update.ReadyAt, limit: w.limit, late: w.inFlight>>w.slot&1 == 0,
	}
	switch {
	case p.Queues() && visits: // such a write gives no place
		e.n = 0
	case !p.Queues():
		now := e.counted // later, if it counts in a period that a clock ahead has begun
		is, was := counts(p, now, w.after), counts(p, now, w.before)
		cost := unitsOf(own, 1)
		e.n = (is[0] - was[0]) / cost[0]
		for i := range is {
			if n := is[i] - was[i]; n != e.n*cost[i] {
				return fmt.Errorf("%s of %d counts %d in limit %d", name(w.slot), e.n, n, i)
			}
		}
	}
	switch {
	case visits && e.n == 0: // a refusal records the slower pace of its limit
		return nil
	case visits:
		if err := x.visited(l, w, e.n); err != nil {
			return err
		}
	case e.n < 1 || e.n > w.call.Count || e.n != w.call.Count && !w.call.Partial:
		return fmt.Errorf("%s of %d counts %d", name(w.slot), w.call.Count, e.n)
	}
	e.left = unitsOf(own, e.n)
	l.entries = append(l.entries, e)
	if p.HasLockout() && x.turns(x.of(l, item), p) {
		l.turned = w.ms + since
	}
	return x.promised(l.entries, e)
}

// idOf returns what the ledger calls the id of the request in a slot. A request
// that presents a place is another one than the one that got the place.
func (y *system) idOf(slot int) uint8 {
	switch {
	case slot == old:
		return old
	case y.requests[slot].verb == present:
		return uint8(y.first(slot)) + slots
	}
	return uint8(y.first(slot))
}

// remembered is how long an item certainly knows an id, and heldFor how long if it is
// held, in milliseconds.
const (
	remembered = 20_000 - 2_000
	heldFor    = 900_000 - 2_000
)

// known reports whether the item must still know the id of e at ms after the edge.
// The contract says that it does forever in a window's item with a limit of up to
// 100, and elsewhere for 20 s, or 15 minutes, less the difference between clocks.
func (e *entry) known(ms int64) bool {
	return !e.forgotten && (e.whole || ms-e.ms < remembered || e.hold && ms-e.ms < heldFor)
}

// canBeKnown reports whether the item can still know the id of e at ms after the
// edge. Elsewhere than in such a window it keeps an id for at most four
// generations of 7 s, or of 5 minutes. Clocks that are apart add 2 s.
func (e *entry) canBeKnown(ms int64) bool {
	const longest, maxHeld = 30_000, 1_202_000
	return e.whole || ms-e.ms <= longest || e.hold && ms-e.ms <= maxHeld
}

// live reports whether the item counts the id, and must know it, in an entry of this kind.
func (l *ledger) live(id uint8, item, ms int64, kind func(entry) bool) bool {
	return slices.ContainsFunc(l.entries, func(e entry) bool { return e.id == id && e.item == item && e.known(ms) && kind(e) })
}

// gaveBack notes a release that the store performed. Of several limits, one may
// have nothing left to give back.
func (x *explorer) gaveBack(l *ledger, w *written) error {
	item := w.item
	p, at, n := x.policyOf(int(item), x.version(w.slot), w.limit), w.call.At, w.call.Count
	id := x.idOf(w.slot)
	i := slices.IndexFunc(l.entries, func(e entry) bool {
		return e.id == id && e.item == item && (e.has(at) || x.renews(id) && at > e.at && !p.HasLog()) && !e.forgotten
	})
	if slices.Contains(l.back, receipt{id, at, item, false}) && (i < 0 || w.write.Now-at < remembered) {
		return fmt.Errorf("%s gives back %s with the receipt %d again", name(w.slot), name(int(id)), at-edge)
	}
	l.back = append(l.back, receipt{id, at, item, false})
	if i < 0 && w.write.Drop.Set == "" && w.write.Now-at > 18_000 {
		// A log's slots of one millisecond are alike once the ids are gone.
		i = slices.IndexFunc(l.entries, func(e entry) bool { return e.item == item && e.at == at && e.left[0] >= n })
		x.excuse(sameMillisecond)
	}
	if i < 0 {
		return fmt.Errorf("%s gives back %s, which is not counted with the receipt %d", name(w.slot), name(int(id)), at-edge)
	}
	e, units := &l.entries[i], unitsOf(x.policyOf(int(item), w.slot, w.limit), n)
	now := max(w.write.Now, e.counted)
	is, was := counts(p, now, w.after), counts(p, now, w.before)
	for k, rate := range p.Rates() {
		if !changes(w, rate.Name) || rate.Kind == "lockout" && w.call.Clear {
			continue
		}
		if rate.Kind == "lockout" {
			if err := x.backInSeries(l, i, k, units[k]); err != nil {
				return fmt.Errorf("%s: %w", name(w.slot), err)
			}
			continue
		}
		if over := gone[rate.Kind]; over == nil || over(rate, x.entriesOf(l, w.slot), k, i, now) {
			return fmt.Errorf("%s gives back in limit %d what does not count any more", name(w.slot), k)
		}
		n := units[k]
		if e.left[k] < n || is[k] > was[k] || was[k]-is[k] > n {
			return fmt.Errorf("%s gives back %d of %d in limit %d, which then counts %d instead of %d", name(w.slot), n, e.left[k], k, is[k], was[k])
		}
		e.left[k] -= n
		for later := i + 1; later < len(l.entries); later++ {
			if l.entries[later].item == item {
				l.entries[later].freed += n
			}
		}
	}
	e.forgotten, e.aliveFor = true, w.inFlight
	l.makeRoom(w.slot, w.by, w.ms, w.replied)
	return nil
}

// renews reports whether a request renews the slots of an id. The time of a renewal is a receipt
// of what the other item counts, too.
func (x *explorer) renews(id uint8) bool {
	for s, r := range x.requests {
		if r.verb == renew && x.idOf(s) == id {
			return true
		}
	}
	return false
}

// frees reports whether a write frees slots of a log.
func frees(w ratelimit.Write) bool {
	return slices.ContainsFunc(w.Update.Acts, func(a policy.Act) bool { return a.Verb == policy.Delete })
}

// latest returns the newest receipt of an id in an item; 0: it is not counted there.
func (l *ledger) latest(id uint8, item int64) int64 {
	for _, e := range l.entries {
		if e.id == id && e.item == item && !e.forgotten {
			return e.latest()
		}
	}
	return 0
}

// renewed notes a renewal that the store performed. It moves the slots of a check that
// count, and nothing else: what the item shows then is what agrees compares.
func (x *explorer) renewed(l *ledger, w *written) error {
	id, at, item := x.idOf(w.slot), w.call.At, w.item
	i := slices.IndexFunc(l.entries, func(e entry) bool {
		return e.id == id && e.item == item && e.latest() == at && !e.forgotten
	})
	if i < 0 {
		return fmt.Errorf("%s renews %s, which is not counted with the receipt %s", name(w.slot), name(int(id)), moment(at))
	}
	e := &l.entries[i]
	for k, rate := range x.policyOf(int(item), x.version(w.slot), w.limit).Rates() {
		switch {
		case rate.Kind != "log" && changes(w, rate.Name):
			return fmt.Errorf("%s changes limit %d", name(w.slot), k)
		case rate.Kind == "log" && gone["log"](rate, l.entries, k, i, w.write.Note):
			return fmt.Errorf("%s renews what does not count any more", name(w.slot))
		}
	}
	copy(e.moved[1:], e.moved[:])
	e.moved[0] = w.write.Note
	e.now, e.ms = w.write.Now, w.ms
	return x.promised(l.entries, *e)
}

// changes reports whether w changes an attribute of a limit.
func changes(w *written, limit string) bool {
	for attr := range w.write.Update.Attributes {
		if (limit == "" || strings.HasPrefix(attr, limit+"_")) && w.before.Get(attr) != w.after.Get(attr) {
			return true
		}
	}
	return false
}
