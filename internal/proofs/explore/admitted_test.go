package explore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// What was admitted must be counted in the items of the user and of the room. That must hold
// after the answer has come, too: a give-back of another attempt of the same request can
// arrive later. So the ledger remembers what was admitted, until the app releases it, and
// judges each give-back. A run can end in each of its states, because nothing that is on its
// way has to arrive. So each end of a run is judged.

// An admission is an id that was admitted, and the number of an item that has to count it.
type admission struct {
	id   uint8
	item int64
}

// admit notes that callers rely on what the ending's item counts.
func (e *ending) admit() {
	a := admission{e.id, e.item}
	i, found := slices.BinarySearchFunc(e.ledger.admitted, a, func(a, b admission) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.item, b.item))
	})
	if !found {
		e.ledger.admitted = slices.Insert(e.ledger.admitted, i, a)
	}
}

// dismiss forgets the admissions that are gone: the app has released them, or the item was deleted.
func (l *ledger) dismiss(gone func(admission) bool) {
	l.admitted = slices.DeleteFunc(l.admitted, gone)
}

// tookBack notes that a part of a check was given back, because a later one has refused or
// failed. Only what the decision has counted is given back, and nothing that was admitted.
func (x *explorer) tookBack(l *ledger, w *written) error {
	item, id := w.item, x.idOf(w.slot)
	i := slices.IndexFunc(l.entries, func(e entry) bool { return e.id == id && e.item == item && !e.forgotten })
	if i < 0 || int(l.entries[i].writer) != w.slot {
		return fmt.Errorf("%s gives back what it has not counted: %s", name(w.slot), inWords(l.entries))
	}
	if slices.Contains(l.admitted, admission{id, item}) {
		return fmt.Errorf("%s gives back in the item of %s what was admitted: %s", name(w.slot), w.write.Key.UserID, inWords(l.entries))
	}
	w.call.At = l.entries[i].at
	l.entries[i].takenBack = true
	return x.gaveBack(l, w)
}

// marks reports whether w only notes that an attempt relies on an id.
func marks(w ratelimit.Write) bool {
	return w.ID == ratelimit.ID{} && w.Drop.Set == "" && len(w.Update.Acts) == 0
}

// hasTwin reports whether another attempt of the ending's request has begun. It can rely on
// what this one has counted.
func (x *explorer) hasTwin(e *ending) bool {
	for s, p := range e.world.procs[:len(x.requests)] {
		if s != e.slot && p.phase != idle && x.idOf(s) == e.id && x.requests[s].verb != release && x.requests[s].verb != unlock && x.requests[s].verb != renew {
			return true
		}
	}
	return false
}

// renewedElsewhere reports whether the slots that the other item counts for c's id were renewed
// to the ending's receipt. It is a receipt of c, too.
func (x *explorer) renewedElsewhere(e *ending, c entry) bool {
	return slices.ContainsFunc(e.ledger.entries, func(o entry) bool { return o.id == c.id && o.item != c.item && o.renewed() && o.has(e.call.At) })
}
