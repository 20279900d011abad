package explore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// Two users act in a room, one of them in every other request. Each action counts in its
// user's item and in the room's item. Both users use the same request ids. In a group, the
// first two requests are one user's, in two activities, and all have the same id. A user
// with a prepaid limit acts alone in the room, so that the user's key becomes hot.
var users = [2]string{"u", "v"}

const room = " room r"

// partsOf returns the parts of the request r in slot s.
func (y *system) partsOf(s int, limit uint8, r ratelimit.Request) []ratelimit.Part {
	n := y.first(s)
	switch {
	case r.Policy.Prepaid():
	case r.Group != "":
		r.UserID, r.ID = users[n/2], name(0)
	default:
		r.UserID, r.ID = users[n%2], name(n/2)
	}
	r.Fallback = false
	inRoom := r
	inRoom.UserID, inRoom.For, inRoom.Clear = room, r.UserID, false
	_, p := y.terms(s, limit)
	inRoom.Policy = given(y.inRoom, p.Policy)
	return []ratelimit.Part{{Request: r}, {Request: inRoom, Subject: "room"}}
}

// each calls judge with the ending as each part of its decision sees it, until there is an
// error.
func (x *explorer) each(e *ending, judge func(*ending) error) error {
	parts := x.calls.at(e.proc.call).parts
	for i := range parts {
		one, r := *e, &parts[i].Request
		one.call, one.item = r, x.itemOf(r, e.now)
		if err := judge(&one); err != nil {
			return fmt.Errorf("in the item of %s: %w", r.UserID, err)
		}
	}
	return nil
}

// toldInRoom judges the answer to a request of a user in a room. The store's counting and
// giving back is judged when it happens. No item has more than its limit. Each id counts
// once in each item, and is given back once.
func (x *explorer) toldInRoom(e *ending) error {
	d, verb := e.result, x.requests[e.slot].verb
	switch {
	case d.failed && e.ask.attempts > 0 && int(e.ask.attempts) < x.tries(e.slot) && x.answeredAll(e) && !e.ledger.away[e.proc.by] && !x.busy(e): // else a circuit is open
		return fmt.Errorf("an error, although the table answered")
	case d.failed:
		return nil
	case d.outage:
		return fmt.Errorf("it may not be decided alone")
	case verb == unlock:
		return x.each(e, func(e *ending) error { return cmp.Or(x.toldCleared(e), x.released(e)) })
	case verb == release:
		return x.each(e, x.released)
	case verb == renew:
		return x.each(e, func(e *ending) error {
			if !e.call.Policy.HasLog() {
				return nil
			}
			return x.toldRenewed(e)
		})
	case d.Reason == ratelimit.OK || d.Reason == ratelimit.Duplicate:
		return x.each(e, x.countedIn)
	case d.Reason == ratelimit.Limited:
		return x.refusedIn(e)
	}
	return fmt.Errorf("this is no reason that the table gives")
}

// countedIn requires that an item counts what was admitted, at the time of the receipt.
func (x *explorer) countedIn(e *ending) error {
	d := e.result
	if e.call.Policy.Prepaid() && (d.Visit || d.Leased) {
		return nil // admits judges it
	}
	if !d.Allowed || d.Granted != e.call.Count || d.Reason == ratelimit.Duplicate && (d.At != 0 || e.ask.unsure) {
		return fmt.Errorf("this is no admission")
	}
	if !slices.ContainsFunc(e.ledger.entries, func(c entry) bool {
		mine := int(c.writer) == e.slot
		return e.sees(c) && !c.takenBack && c.n == d.Granted && (d.At == 0 || d.At == c.at) && (mine || d.At == 0) && (!mine || d.Reason == ratelimit.OK)
	}) {
		return fmt.Errorf("it is admitted, and not counted: %s", inWords(e.ledger.entries))
	}
	e.admit()
	return nil
}

// refusedIn requires that a refusal has a reason, and that nothing is left of what it
// took before. Something can be left for five reasons. An attempt had no answer. No attempt
// was left. The same id was counted and given back in the same millisecond before. Another
// attempt of the request relies on it. Its window is over. For an item with several
// windows, the latest time that it has met decides that.
func (x *explorer) refusedIn(e *ending) error {
	d := e.result
	if d.Allowed || d.Granted != 0 || d.At != 0 {
		return fmt.Errorf("limited is not allowed")
	}
	counted, lowered, full := 0, false, e.ledger.full != 0 && e.ledger.full-since >= x.instants[e.proc.began]-1000
	err := x.each(e, func(e *ending) error {
		for i, c := range e.ledger.entries {
			switch {
			case c.id != e.id || c.item != e.item || c.forgotten:
			case x.itemOf(e.call, x.time(e.world.now, int(e.proc.by))) != e.item || slices.Contains(e.ledger.back, receipt{c.id, c.at, c.item, false}):
			case int(c.writer) == e.slot && !c.late && x.answeredAll(e) && !x.gaveUp(e) && !x.hasTwin(e) && !x.over(e, i):
				return fmt.Errorf("it is refused, and counted: %s", inWords(e.ledger.entries))
			case c.known(x.instants[e.world.now]) && c.ms < x.instants[e.proc.began]:
				counted++
				lowered = lowered || x.lowered(e, c)
			}
		}
		_, fits := e.call.Policy.Take(e.now, e.call.Count, 0, x.items.at(x.item(e.world.store, int(e.item))).State)
		full = full || !fits
		return nil
	})
	switch {
	case err != nil:
		return err
	case counted == 2 && lowered && e.ask.attempts == 0:
		x.excuse(refusedAfterLowered)
	case counted == 2 && e.ask.attempts == 0 && x.roomSince(e):
		x.excuse(refusedAfterRoom)
	case counted == 2:
		return fmt.Errorf("it is a repeat of what both items count")
	case !full:
		return fmt.Errorf("both items have room")
	}
	return nil
}

// busy reports whether the circuit of a part's key was open when the decision went on last.
func (x *explorer) busy(e *ending) bool {
	in := x.instances.at(e.before)
	return in.busy != nil && slices.ContainsFunc(x.calls.at(e.proc.call).parts, func(p ratelimit.Part) bool {
		return !in.busy[x.itemOf(&p.Request, e.now)].IsZero()
	})
}

// over reports whether no limit counts an entry any more at the latest time that its item has met.
func (x *explorer) over(e *ending, entry int) bool {
	now := e.ledger.met(e.item, x.time(e.world.now, int(e.proc.by)))
	for i, r := range e.call.Policy.Rates() {
		if r.Kind == "lockout" {
			if x.inSeries(e, e.ledger.entries[entry]) {
				return false
			}
			continue
		}
		if !gone[r.Kind](r, e.ledger.entries, i, entry, now) {
			return false
		}
	}
	return true
}

// since makes a time in ms after the edge positive.
const since = 1_000_000

// isFull reports whether an item has no room for a request, before or after a write.
func (x *explorer) isFull(w ratelimit.Write, r ratelimit.Request, before, after uint32) bool {
	if len(x.room) == 0 && !r.Policy.Prepaid() || r.Policy.IsZero() {
		return false
	}
	n := r.Count
	for _, other := range x.requests {
		if r.Policy.Prepaid() { // an instance compares each request with what it saw
			n = max(n, other.count)
		}
	}
	if len(x.dear) > 0 { // in units of the one that costs less
		n *= 2
	}
	return slices.ContainsFunc([]uint32{before, after}, func(item uint32) bool {
		_, ok := r.Policy.Take(w.Now, min(n, r.Policy.Max()), 0, x.items.at(item).State)
		return !ok
	})
}

// answeredAll reports whether the table answered each attempt of the decision.
func (x *explorer) answeredAll(e *ending) bool {
	return !slices.ContainsFunc(x.outcomes(e), func(o outcome) bool { return o != answered })
}

// gaveUp reports whether the decision ended because others changed the item that it gives
// back in, as often as it has attempts.
func (x *explorer) gaveUp(e *ending) bool {
	last := x.tolds.at(e.proc.told)
	k := x.asks[last.after]
	return !last.first && k.what == update && x.writes.at(k.write).Drop.Set != "" && !last.answer.done
}

// inRooms returns the kinds whose limits users and a room can have, in pairs that have
// each kind on both sides.
func inRooms() (subjects []subject) {
	var texts []string
	for _, k := range policy.Kinds() {
		if s := text(k, two, 10); !policy.Must(s).Queues() {
			texts = append(texts, s)
		}
	}
	for i, s := range texts {
		kinds := policy.Must(s).Rates()[0].Kind + " in a room"
		subjects = append(subjects, subject{kinds: kinds, text: []string{s}, room: []string{s}}, subject{kinds: kinds, text: []string{s}, room: []string{texts[(i+1)%len(texts)]}})
	}
	return subjects
}

// slotsInRooms returns users and rooms that have slots, both or one of them.
func slotsInRooms() []subject {
	log, other := []string{"log 2/10s"}, []string{"2/20s"}
	return []subject{
		{kinds: "log in a room", text: log, room: log},
		{kinds: "log in a room", text: log, room: other},
		{kinds: "log in a room", text: log, room: []string{"sliding 2/10s"}},
		{kinds: "log in a room", text: log, room: []string{"bucket 2/10s"}},
		{kinds: "fixed in a room", text: other, room: log},
	}
}
