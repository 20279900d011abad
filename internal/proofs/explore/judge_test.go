package explore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// An ending is a decision that is over, with what the judge needs to know.
type ending struct {
	world  *world
	ledger *ledger
	slot   int
	proc   proc
	ask    ask
	result result
	call   *ratelimit.Request
	id     uint8
	now    int64 // when the decision began, by its instance's clock
	item   int64 // the number of its item
	before uint32
}

// judge compares the answer that the caller gets with the ledger, and notes what
// follows from it. Before is the instance when the decision went on last.
func (x *explorer) judge(w *world, l *ledger, s int, before uint32) error {
	p := w.procs[s]
	e := ending{
		world: w, ledger: l, slot: s, proc: p, ask: x.asks[p.told], call: &x.calls.values[p.call].request,
		id: x.idOf(s), now: x.time(p.began, int(p.by)), before: before,
	}
	e.result = x.results.at(e.ask.decision)
	e.item = x.itemOf(e.call, e.now)
	err := x.verdict(&e)
	if err == nil && x.fails {
		err = x.failsAlone(&e)
	}
	if err == nil {
		err = x.admits(&e, e.ask.instance)
	}
	x.noteAway(&e)
	if err != nil {
		return fmt.Errorf("%s is told %s, granted %d, receipt %s, place %s after %d requests: %w",
			name(s), e.result.Reason, e.result.Granted, moment(e.result.At), moment(e.result.ReadyAt), e.ask.attempts, err)
	}
	return nil
}

// itemOf returns the number of the item that counts r at now.
func (x *explorer) itemOf(r *ratelimit.Request, now int64) int64 {
	k := ratelimit.Key{UserID: r.UserID, Activity: "act"}
	k.Window, _ = r.Policy.Item(now)
	return int64(x.number(k))
}

// moment writes a time in ms after the edge.
func moment(at int64) string {
	if at == 0 {
		return "none"
	}
	return fmt.Sprintf("%+dms", at-edge)
}

func (x *explorer) verdict(e *ending) error {
	d := e.result
	if len(x.room) > 0 {
		return x.toldInRoom(e)
	}
	switch x.requests[e.slot].verb {
	case release, unlock, reset, renew:
		if !d.failed && e.ledger.freedBy == int8(e.slot) {
			e.ledger.freedTold = true
		}
		e.ledger.unlooked[e.proc.by] = e.ledger.unlooked[e.proc.by] || x.requests[e.slot].verb != renew
		if d.failed && e.ask.endsEarly(x.tries(e.slot)) && !e.ask.unsure {
			return fmt.Errorf("an error, although the table answered")
		}
		if x.requests[e.slot].verb == reset && !d.failed {
			e.ledger.alone[e.proc.by] = nil // a reset clears what the instance admitted alone, too
		}
		if x.requests[e.slot].verb == unlock && !d.failed {
			return cmp.Or(x.toldCleared(e), x.released(e))
		}
		if x.requests[e.slot].verb == release && !d.failed {
			return x.released(e)
		}
		if x.requests[e.slot].verb == renew && !d.failed {
			return x.toldRenewed(e)
		}
		return nil
	case status:
		return nil
	case present:
		if w := e.call.Policy.Rates()[0].Window.Milliseconds(); e.call.ReadyAt/w >= e.now/w {
			return x.presented(e)
		}
	case check, partial, repeat:
	}
	switch {
	case d.failed:
		return fmt.Errorf("an error, although it may decide alone")
	case d.outage:
		return x.decidedAlone(e)
	case d.Visit, d.Leased: // admits judges it
		return nil
	}
	switch d.Reason {
	case ratelimit.OK:
		return x.toldOK(e)
	case ratelimit.Duplicate:
		return x.toldDuplicate(e)
	case ratelimit.Delayed:
		if !slices.ContainsFunc(e.ledger.entries, func(c entry) bool { return e.sees(c) && c.place == d.ReadyAt }) {
			return fmt.Errorf("this is not its place")
		}
	case ratelimit.Limited:
		return x.toldLimited(e)
	default:
		return fmt.Errorf("this is no reason that the table gives")
	}
	return nil
}

// sees reports whether the store counted c for the ending's request at some time
// while its decision was in flight.
func (e *ending) sees(c entry) bool {
	return c.id == e.id && c.item == e.item && (!c.forgotten || c.aliveFor>>e.slot&1 == 1)
}

// toldOK requires that the store counted the request, as many actions as the
// caller is told, and at the time of the receipt. The contract has one exception:
// a repeat by the caller may be ok without a receipt if an attempt of it had an
// unknown outcome.
func (x *explorer) toldOK(e *ending) error {
	d := e.result
	if !d.Allowed {
		return fmt.Errorf("ok is not allowed")
	}
	for _, c := range e.ledger.entries {
		mine := int(c.writer) == e.slot
		switch {
		case !e.sees(c), c.n != d.Granted, d.At != 0 && d.At != c.at:
		case !mine && (d.At != 0 || !e.ask.unsure):
		case mine && !e.ask.unsure && d.At == 0:
		case c.place > e.now || !e.toldPlace(c):
		default:
			if !mine {
				x.excuse(okWithoutReceipt)
			}
			return nil
		}
	}
	return fmt.Errorf("the store does not count that: %s", inWords(e.ledger.entries))
}

// toldDuplicate requires that an earlier decision was counted, and that no
// attempt of this one had an unknown outcome.
func (x *explorer) toldDuplicate(e *ending) error {
	d := e.result
	switch {
	case e.ask.unsure:
		return fmt.Errorf("an attempt of it may have been counted")
	case !d.Allowed || d.At != 0 || d.Granted != e.call.Count && !e.call.Partial:
		return fmt.Errorf("a duplicate is allowed, without a receipt")
	case !slices.ContainsFunc(e.ledger.entries, func(c entry) bool {
		return e.sees(c) && int(c.writer) != e.slot && c.canBeKnown(x.instants[e.world.now]) && e.toldPlace(c)
	}):
		return fmt.Errorf("no other decision was counted lately: %s", inWords(e.ledger.entries))
	}
	return nil
}

// toldLimited requires that the request is not counted. An answer from memory
// must have a reason: the item has no room, or it had none a second ago and
// somebody else made room since.
func (x *explorer) toldLimited(e *ending) error {
	d := e.result
	if d.Allowed || d.Granted != 0 {
		return fmt.Errorf("limited is not allowed")
	}
	if e.ask.attempts > 0 {
		if e.proc.known {
			return fmt.Errorf("the store counts it: %s", inWords(e.ledger.entries))
		}
		if e.proc.room {
			return fmt.Errorf("the table has room: %s", inWords(e.ledger.entries))
		}
		e.ledger.refused |= 1 << e.slot
		return nil
	}
	l := e.ledger
	if l.unlooked[e.proc.by] && !x.shared {
		return fmt.Errorf("from memory, and this instance saw that before its own release or reset")
	}
	if x.roomSince(e) {
		x.excuse(refusedAfterRoom)
		return nil
	}
	for _, c := range l.entries {
		switch {
		case !e.sees(c) || !c.known(x.instants[e.world.now]) || !e.toldPlace(c):
		case x.lowered(e, c):
			x.excuse(refusedAfterLowered)
			return nil
		default:
			return fmt.Errorf("the store counts it: %s", inWords(l.entries))
		}
	}
	if e.call.Policy.Prepaid() && l.crowded && l.full != 0 && l.full-since >= x.instants[e.world.now]-1000 {
		x.excuse(refusedWhileHot)
		return nil
	}
	n := e.call.Count
	if e.call.Partial {
		n = 1
	}
	if _, ok := e.call.Policy.Take(e.now, n, 0, x.items.at(x.item(e.world.store, int(e.item))).State); ok && !x.begun(e) {
		return fmt.Errorf("from memory, but the table has room")
	}
	return nil
}

// begun reports whether a clock ahead has begun the next window of a limit beside others. Then
// actions of a clock behind count there, too, and can have room. By its own clock, an instance still
// refuses by the window before, which is not over.
func (x *explorer) begun(e *ending) bool {
	for _, r := range e.call.Policy.Rates() {
		if r.Kind != "fixed" || r.Name == "" || r.Unit != "" {
			continue
		}
		window := r.Window.Milliseconds()
		for _, c := range e.ledger.entries {
			if c.item == e.item && max(c.at, c.counted)/window > e.now/window {
				return true
			}
		}
	}
	return false
}

// roomSince reports whether another instance made room up to a second ago, so that this one can
// still refuse from memory. An attempt that locks also leads to free attempts if the lock ends before the
// window.
func (x *explorer) roomSince(e *ending) bool {
	l := e.ledger
	ours := l.freedOn == e.proc.by && l.freedTold
	if l.turned != 0 && x.instants[e.world.now]-(l.turned-since) <= 1000 {
		return true
	}
	return l.freedBy >= 0 && !ours && x.instants[e.world.now]-l.freed <= 1000
}

// lowered reports whether the ending's instance follows a lower limit than the one that
// counted c.
func (x *explorer) lowered(e *ending, c entry) bool {
	return x.most(e, e.proc.limit) < x.most(e, c.limit)
}

// presented judges a place that was presented without asking the table: on time
// it runs, early it is told the same place.
func (x *explorer) presented(e *ending) error {
	w := e.call.Policy.Rates()[0].Window.Milliseconds()
	d, place := e.result, e.call.ReadyAt
	onTime, early := place/w == e.now/w, place > e.now
	switch {
	case e.ask.attempts > 0:
		return fmt.Errorf("the table was asked about a place in time")
	case onTime && d.Reason == ratelimit.OK && d.Allowed && d.At == 0,
		!onTime && early && d.Reason == ratelimit.Delayed && !d.Allowed && d.ReadyAt == place:
		return nil
	}
	return fmt.Errorf("the place is at %d and it came at %d", place-edge, e.now-edge)
}

// released requires that a release in time gives back what the check took: the
// item does not know the check any more. A late copy of the check can count
// after a reset, and it can do so after the release was performed.
func (x *explorer) released(e *ending) error {
	if e.now-e.call.At > 10_000 && !x.hold || e.now-e.call.At > heldFor {
		return nil
	}
	elsewhere := slices.ContainsFunc(e.ledger.entries, func(c entry) bool { return c.id == e.id && c.item != e.item && !c.forgotten })
	if len(x.room) > 0 && e.now-e.call.At > 10_000 && !e.call.Policy.HasLog() && !elsewhere {
		return nil // an earlier release has reached the slots alone, and their item forgets that after 20 s
	}
	counts := false
	if slices.Contains(e.ledger.back, receipt{e.id, e.call.At, e.item, false}) {
		return nil // given back already; an attempt that arrived after that can count now
	}
	for _, c := range e.ledger.entries {
		if c.id != e.id || !c.has(e.call.At) && !x.renewedElsewhere(e, c) || c.item != e.item {
			continue
		}
		if c.forgotten && c.aliveFor>>e.slot&1 == 1 {
			return nil // and what was counted since is another action
		}
		counts = counts || !c.forgotten && !c.late && x.stillCounts(e, c, x.time(e.world.now, int(e.proc.by)))
	}
	if counts {
		return fmt.Errorf("nothing was given back: %s", inWords(e.ledger.entries))
	}
	return nil
}

// toldRenewed requires that the answer to a renewal names slots that the store renewed. If another
// renewal came between the user's renewal and the room's, there is no receipt for both. A holder
// is told expired for three reasons only. Its slots may have expired by the clock that is ahead.
// Its receipt is so much older than the last renewal that the id is forgotten. Or the check was
// repeated after that: then the id belongs to another slot, and the first one ends by itself.
func (x *explorer) toldRenewed(e *ending) error {
	d := e.result
	switch {
	case d.Reason == ratelimit.OK && d.Allowed && d.Granted == e.call.Count:
		if slices.ContainsFunc(e.ledger.entries, func(c entry) bool {
			return e.sees(c) && c.renewed() && (slices.Contains(c.moved[:], d.At) || d.At == 0 && len(x.room) > 0)
		}) {
			return nil
		}
		return fmt.Errorf("these slots were not renewed: %s", inWords(e.ledger.entries))
	case d.Reason != ratelimit.Expired || d.Allowed || d.Granted != 0 || d.At != 0 || d.outage:
		return fmt.Errorf("this is no answer to a renewal")
	}
	now := x.instants[e.world.now]
	if slices.ContainsFunc(e.ledger.entries, func(c entry) bool { // a slot of another part is gone, so none of them moves
		held := x.policyOf(int(c.item), old, e.proc.limit).HeldUntil(x.slotsAt(e, c))
		return c.id == e.id && c.item != e.item && !c.forgotten && 0 < held && held <= x.time(e.world.now, 1)
	}) {
		return nil
	}
	for _, c := range e.ledger.entries {
		known := e.call.At == c.latest() || now-c.ms < remembered
		if slices.ContainsFunc(e.ledger.entries, func(o entry) bool { return o.id == c.id && o.item == c.item && o.at > c.latest() }) {
			continue
		}
		if c.id == e.id && c.item == e.item && !c.forgotten && !c.late && c.has(e.call.At) && known && x.time(e.world.now, 1) < e.call.Policy.HeldUntil(x.slotsAt(e, c)) {
			return fmt.Errorf("its slots count: %s", inWords(e.ledger.entries))
		}
	}
	return nil
}

// slotsAt returns the time of c's slots that the ending's request has met for certain: a
// renewal while its decision was in flight may have come after it.
func (x *explorer) slotsAt(e *ending, c entry) int64 {
	if c.ms < x.instants[e.proc.began] {
		return c.latest()
	}
	return e.call.At
}

// stillCounts reports whether a limit certainly still counts c at now, when the
// release ended: its window is not over by any clock. Some time after
// the check, only a log gives back.
func (x *explorer) stillCounts(e *ending, c entry, now int64) bool {
	return slices.ContainsFunc(e.call.Policy.Rates(), func(r policy.Rate) bool {
		if r.Kind == "lockout" {
			return x.inSeries(e, c)
		}
		if r.Kind == "log" {
			return max(now, c.latest())+2000 < x.slotsAt(e, c)+r.Window.Milliseconds()
		}
		if now-c.at > remembered && (!c.hold || now-c.at >= heldFor) { // a release frees only slots then
			return false
		}
		if r.Unit != "" {
			return windowOf(r, max(now, c.counted)+2000) == windowOf(r, c.counted)
		}
		w := min(r.Window.Milliseconds(), r.Window.Milliseconds()/r.Limit)
		return (max(now, c.counted)+2000)/w == c.counted/w
	})
}
