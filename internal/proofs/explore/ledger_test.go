package explore

import (
	"fmt"
	"slices"
	"strings"
)

// A ledger is what the explorer notes about a run, apart from the code that it
// tests. It keeps each counted action on its own, and knows nothing of how a
// policy keeps its state. It is part of a state of the system, so two runs that
// differ in their ledgers lead to different states.
type ledger struct {
	facts

	entries  []entry
	admitted []admission // in order
	back     []receipt   // those that gave back something
	alone    [2][]entry  // what each instance admitted alone, by its own clock
	over     []dropped   // for each item, the newest of the entries that the ledger has dropped
	told     []entry     // of prepaid limits: what callers were told that they may do
}

// facts are what a ledger has beside its lists.
type facts struct {
	prepaid

	askedAt [2]int64 // when the last decision of an instance that asked the table and got no answer began, by its clock
	freed   int64    // when room was last made, in ms after the edge
	turned  int64    // when a lockout last locked or began a new series, in ms after the edge and 1,000,000 more: it can have room sooner than before; 0: never
	full    int64    // when an item last had no room for a request of a room or of a prepaid limit, in ms after the edge and 1,000,000 more; 0: never

	removed   [slots]uint8
	away      [2]bool // the last decision of an instance that asked the table got no answer
	freedBy   int8    // the slot that made room; -1: nobody has
	freedOn   uint8   // its instance
	freedTold bool    // the caller of that release or reset got the answer
	excused   uint8   // the slots since whose refusal by the store there was a release or reset
	refused   uint8   // the slots that were told limited
	unlooked  [2]bool // an instance got no answer from the table since its own last release or reset ended
	whole     bool    // each entry stays, because a lockout goes by the times of those given back, too
}

// A dropped is when an item last counted something that matters no more. What an
// item shows of earlier times may have made room for it.
type dropped struct{ item, ms int64 } // item: its number

// An entry is what was counted for a request.
type entry struct {
	item    int64            // the number of the item
	n       int64            // the actions, and how many of them each limit still counts
	left    [maxLimits]int64 // in units: an action takes as many as it costs
	at      int64            // the receipt, and the time of its slots in a log
	counted int64            // when it counts in other limits: later, if a clock that is ahead has begun something
	moved   [slots - 1]int64 // log: when its slots were renewed, and that is a receipt too; the last one first, 0: none
	now     int64            // the clock that counted it
	ms      int64            // when the store counted it, in ms after the edge
	place   int64            // reservoir: when it may run
	freed   int64            // bucket: units of the item that came before this one and were given back after it

	id        uint8 // the slot whose id it has
	writer    uint8 // the slot that counted it
	limit     uint8 // the number of the policy that counted it
	aliveFor  uint8 // forgotten: the slots in flight when it was
	whole     bool  // the item knows its id as long as it lives
	hold      bool  // the item knows its id for 15 minutes
	cleared   bool  // lockout: its series was ended by a release with clear, or by a reset
	takenBack bool  // by a give-back, and not by the app's release
	late      bool  // a copy that arrived after its decision was over
	forgotten bool  // the item need not know the id any more
}

// renewed reports whether the slots of e were renewed.
func (e *entry) renewed() bool { return e.moved[0] != 0 }

// latest returns the newest receipt of e, which is the time of its slots in a log.
func (e *entry) latest() int64 { return max(e.at, e.moved[0]) }

// has reports whether at is a receipt of e.
func (e *entry) has(at int64) bool { return e.at == at || at != 0 && slices.Contains(e.moved[:], at) }

// A receipt is what a release shows, and the number of the item that it changes.
type receipt struct {
	id    uint8
	at    int64
	item  int64
	clear bool // it ends the series of each lockout, too
}

// maxLimits is the most limits of a policy that the explorer takes.
const maxLimits = 5

// old is the id of what was counted before the run began.
const old = 255

// makeRoom notes that a release or reset was performed, while the answers to some
// slots were on their way.
func (l *ledger) makeRoom(slot int, by uint8, ms int64, replied uint8) {
	l.freed, l.freedOn, l.freedBy, l.freedTold, l.excused = ms, by, int8(slot), false, l.refused|replied
}

// emptied notes that an item is gone. With a reset its actions no
// longer count, and its releases are forgotten. With cleanup they must have
// expired, so the promise goes on as if the item were there.
func (l *ledger) emptied(item int64, reset bool, inFlight uint8) {
	for i := range l.entries {
		e := &l.entries[i]
		if e.item != item {
			continue
		}
		if !e.forgotten {
			e.forgotten, e.aliveFor = true, inFlight
		}
		if reset {
			e.left, e.cleared = [maxLimits]int64{}, true
		}
	}
	l.over = slices.DeleteFunc(l.over, func(o dropped) bool { return o.item == item })
	l.dismiss(func(a admission) bool { return a.item == item })
	if reset {
		l.back = slices.DeleteFunc(l.back, func(r receipt) bool { return r.item == item })
	}
}

// ended forgets that a slot's decision is in flight, and each entry that matters
// no more.
func (l *ledger) ended(slot int) {
	for i := range l.entries {
		l.entries[i].aliveFor &^= 1 << slot
	}
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool {
		if l.whole || !e.forgotten || e.aliveFor != 0 || e.left != [maxLimits]int64{} {
			return false
		}
		l.drop(dropped{e.item, max(e.latest(), e.counted, e.now)})
		return true
	})
}

// met returns the latest time that an item has met until now.
func (l *ledger) met(item, now int64) int64 {
	for _, e := range l.entries {
		if e.item == item {
			now = max(now, e.latest(), e.counted, e.now)
		}
	}
	for _, o := range l.over {
		if o.item == item {
			now = max(now, o.ms)
		}
	}
	return now
}

func (l *ledger) drop(o dropped) {
	i := slices.IndexFunc(l.over, func(other dropped) bool { return other.item == o.item })
	if i < 0 {
		l.over = append(l.over, o)
		return
	}
	l.over[i].ms = max(l.over[i].ms, o.ms)
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
		if e.renewed() {
			fmt.Fprintf(&b, ", renewed at %s", moment(e.latest()))
		}
		if e.place != 0 {
			fmt.Fprintf(&b, " for %s", moment(e.place))
		}
		if e.forgotten && e.id != old { // nobody asks for the rest again, but it counts
			b.WriteString(", given back or gone")
		}
		b.WriteString("]")
	}
	return b.String()
}
