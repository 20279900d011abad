package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A ledger is what the explorer notes about a run, apart from the code that it
// tests. It keeps each counted action on its own, and knows nothing of how a
// policy keeps its state. It is part of a state of the system, so two runs that
// differ in their ledgers lead to different states.
type ledger struct {
	entries   []entry
	back      []receipt // those that gave back something
	removed   [slots]uint8
	alone     [2][]entry // what each instance admitted alone, by its own clock
	away      [2]bool    // the last decision of an instance that asked the table got no answer
	askedAt   [2]int64   // when that decision began, by the instance's clock
	freed     int64      // when room was last made, in ms after the edge
	freedBy   int8       // the slot that made room; -1: nobody has
	freedOn   uint8      // its instance
	excused   uint8      // those of them since when there was a release or reset
	unlooked  [2]bool    // an instance got no answer from the table since its own last release or reset ended
	freedTold bool       // the caller of that release or reset got the answer
	refused   uint8      // the slots that were told limited

}

// An entry is what was counted for a request.
type entry struct {
	id     uint8 // the slot whose id it has
	writer uint8 // the slot that counted it
	item   int64 // the window of the item
	n      int64 // the actions, and how many of them each limit still counts
	left   [mostLimits]int64
	at     int64 // the receipt
	now    int64 // the clock that counted it
	ms     int64 // when the store counted it, in ms after the edge
	whole  bool  // the item knows its id as long as it lives
	place  int64 // reservoir: when it may run
	limit  uint8 // the number of the policy that counted it
	freed  int64 // bucket: actions that came before this one and were given back after it

	forgotten bool  // the item need not know the id any more
	aliveFor  uint8 // forgotten: the slots in flight when it was
}

// A receipt is what a release shows.
type receipt struct {
	id uint8
	at int64
}

// mostLimits is the most limits of a policy that the explorer takes.
const mostLimits = 5

// old is the id of what was counted before the run began.
const old = 255

func newLedger() ledger { return ledger{freedBy: -1} }

func encodeEntries(b []byte, entries []entry) []byte {
	b = encodeInt(b, int64(len(entries)))
	for _, e := range entries {
		b = append(b, e.id, e.writer, e.limit, e.aliveFor)
		b = encodeInt(encodeInt(encodeInt(b, e.item), e.n), e.at-edge)
		b = encodeInt(encodeInt(encodeInt(encodeInt(b, e.now-edge), e.ms), e.place-edge), e.freed)
		b = encodeBool(encodeBool(b, e.forgotten), e.whole)
		for _, n := range e.left {
			b = encodeInt(b, n)
		}
	}
	return b
}

func encodeLedger(b []byte, l ledger) []byte {
	b = encodeInt(encodeEntries(b, l.entries), int64(len(l.back)))
	for _, r := range l.back {
		b = encodeInt(append(b, r.id), r.at)
	}
	b = append(b, l.removed[:]...)
	for i := range l.alone {
		b = encodeInt(encodeBool(encodeEntries(b, l.alone[i]), l.away[i]), l.askedAt[i])
	}
	b = append(encodeInt(b, l.freed), byte(l.freedBy), l.freedOn, l.refused, l.excused)
	return encodeBool(encodeBool(encodeBool(b, l.freedTold), l.unlooked[0]), l.unlooked[1])
}

// copied returns a ledger that can change without changing l.
func (l ledger) copied() ledger {
	l.entries, l.back = slices.Clone(l.entries), slices.Clone(l.back)
	for i := range l.alone {
		l.alone[i] = slices.Clone(l.alone[i])
	}
	return l
}

// A written is an update that the store performed, or refused.
type written struct {
	slot          int
	limit, by     uint8
	alone         bool // release: the receipt comes from a decision that an instance made alone
	call          ratelimit.Request
	write         ratelimit.Write
	before, after policy.State
	ms            int64 // the true time, in ms after the edge
	inFlight      uint8 // the slots whose decisions are in flight
}

// counts returns what a read shows of each limit.
func counts(p policy.Policy, now int64, s policy.State) []int64 {
	r := p.Read(now, 0, s)
	if len(r.Each) == 0 {
		return []int64{r.Used}
	}
	used := make([]int64, len(r.Each))
	for i, each := range r.Each {
		used[i] = each.Used
	}
	return used
}

// counted notes a check that the store performed. It returns what is wrong with
// that.
func (x *explorer) counted(l *ledger, w written) error {
	p := x.policies[w.limit]
	id := x.idOf(w.slot)
	if slices.ContainsFunc(l.back, func(r receipt) bool { return r.id == id }) && int(w.slot) == x.first(w.slot) {
		x.excuse(countedAfterRelease)
	}
	if l.live(id, w.write.Key.Window, w.ms) {
		return fmt.Errorf("%s is counted twice", name(w.slot))
	}
	switch bit := uint8(1) << w.slot; {
	case l.refused&bit == 0:
	case l.excused&bit == 0:
		return fmt.Errorf("%s is counted after it was told limited, and nothing was released since", name(w.slot))
	default:
		x.excuse(countedAfterRefusal)
	}
	e := entry{
		id: id, writer: uint8(w.slot), item: w.write.Key.Window, n: 1, now: w.write.Now, at: w.write.Now, ms: w.ms, whole: w.write.Whole,
		place: w.write.Update.ReadyAt, limit: w.limit,
	}
	if !p.Queues() {
		is, was := counts(p, w.write.Now, w.after), counts(p, w.write.Now, w.before)
		e.n, e.at = is[0]-was[0], receiptOf(p, w)
		for i := range is {
			if n := is[i] - was[i]; n != e.n {
				return fmt.Errorf("%s counts %d in the first limit and %d in limit %d", name(w.slot), e.n, n, i)
			}
		}
	}
	if e.n < 1 || e.n > w.call.Count || e.n != w.call.Count && !w.call.Partial {
		return fmt.Errorf("%s of %d counts %d", name(w.slot), w.call.Count, e.n)
	}
	for i := range p.Rates() {
		e.left[i] = e.n
	}
	l.entries = append(l.entries, e)
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

// known reports whether the item must still know the id of e at ms after the edge.
// The contract says that it does forever in a window's item with a limit of up to
// 100, and elsewhere for 20 s less the difference between clocks.
func (e *entry) known(ms int64) bool {
	const remembered = 20_000 - 2_000
	return !e.forgotten && (e.whole || ms-e.ms < remembered)
}

// live reports whether the item counts the id and must know it.
func (l *ledger) live(id uint8, item, ms int64) bool {
	return slices.ContainsFunc(l.entries, func(e entry) bool { return e.id == id && e.item == item && e.known(ms) })
}

// receiptOf returns the time under which w counts. A log keeps it in its slots.
// It can differ from what a read shows if an update arrives late: a clock that is
// ahead may have begun something since the update was planned.
func receiptOf(p policy.Policy, w written) int64 {
	const epoch = 1_577_836_800_000
	for _, act := range w.write.Update.Acts {
		_, slot, ok := strings.Cut(act.Attr, "_")
		if !ok {
			slot = act.Attr
		}
		if len(slot) == 2 && slot[1] >= '0' && slot[1] <= '9' && act.Verb == policy.Set {
			return act.Value + epoch
		}
	}
	return p.Read(w.write.Now, 0, w.after).At
}

// gaveBack notes a release that the store performed. Of several limits, one may
// have nothing left to give back.
func (x *explorer) gaveBack(l *ledger, w written) error {
	p, at, n := x.policies[w.limit], w.call.At, w.call.Count
	id := x.idOf(w.slot)
	i := slices.IndexFunc(l.entries, func(e entry) bool {
		return e.id == id && e.item == w.write.Key.Window && (e.at == at || w.alone) && !e.forgotten
	})
	if slices.Contains(l.back, receipt{id, at}) {
		return fmt.Errorf("%s gives back %s with the receipt %d again", name(w.slot), name(int(id)), at-edge)
	}
	l.back = append(l.back, receipt{id, at})
	if i < 0 && w.write.Drop.Set == "" && w.write.Now-at > 18_000 {
		// A log's slots of one millisecond are alike once the ids are gone.
		i = slices.IndexFunc(l.entries, func(e entry) bool { return e.at == at && e.left[0] >= n })
		x.excuse(sameMillisecond)
	}
	if i < 0 {
		return fmt.Errorf("%s gives back %s, which is not counted with the receipt %d", name(w.slot), name(int(id)), at-edge)
	}
	e := &l.entries[i]
	if e.at != at {
		x.excuse(receiptFromOutage)
	}
	is, was := counts(p, w.write.Now, w.after), counts(p, w.write.Now, w.before)
	for k, rate := range p.Rates() {
		if !changes(w, rate.Name) {
			continue
		}
		if over := gone[rate.Kind]; over == nil || over(rate, l.entries, k, i, w.write.Now) {
			return fmt.Errorf("%s gives back in limit %d what does not count any more", name(w.slot), k)
		}
		if e.left[k] < n || is[k] > was[k] || was[k]-is[k] > n {
			return fmt.Errorf("%s gives back %d of %d in limit %d, which then counts %d instead of %d", name(w.slot), n, e.left[k], k, is[k], was[k])
		}
		e.left[k] -= n
		for later := i + 1; later < len(l.entries); later++ {
			l.entries[later].freed += n
		}
	}
	e.forgotten, e.aliveFor = true, w.inFlight
	l.makeRoom(w.slot, w.by, w.ms)
	return nil
}

// changes reports whether w changes an attribute of a limit.
func changes(w written, limit string) bool {
	for attr := range w.write.Update.Attributes {
		if (limit == "" || strings.HasPrefix(attr, limit+"_")) && w.before[attr] != w.after[attr] {
			return true
		}
	}
	return false
}

// makeRoom notes that a release or reset was performed.
func (l *ledger) makeRoom(slot int, by uint8, ms int64) {
	l.freed, l.freedOn, l.freedBy, l.freedTold, l.excused = ms, by, int8(slot), false, l.refused
}

// emptied notes that the item of a window is gone. With a reset its actions no
// longer count. With cleanup they must have expired, so the promise goes on as if
// the item were there.
func (l *ledger) emptied(window int64, reset bool, inFlight uint8) {
	for i := range l.entries {
		e := &l.entries[i]
		if e.item != window {
			continue
		}
		if !e.forgotten {
			e.forgotten, e.aliveFor = true, inFlight
		}
		if reset {
			e.left = [mostLimits]int64{}
		}
	}
}

// ended forgets that a slot's decision is in flight, and each entry that matters
// no more.
func (l *ledger) ended(slot int) {
	for i := range l.entries {
		l.entries[i].aliveFor &^= 1 << slot
	}
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool {
		return e.forgotten && e.aliveFor == 0 && e.left == [mostLimits]int64{}
	})
}

// inWords writes entries for a message.
func inWords(entries []entry) string {
	var b strings.Builder
	for _, e := range entries {
		id := "rest"
		if e.id != old {
			id = name(int(e.id) % slots)
		}
		fmt.Fprintf(&b, "[%s counts %d at %s", id, e.n, moment(e.at))
		if e.place != 0 {
			fmt.Fprintf(&b, " for %s", moment(e.place))
		}
		if e.forgotten {
			b.WriteString(", given back or gone")
		}
		b.WriteString("]")
	}
	return b.String()
}
