package explore

import (
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// past reports whether the window of a place of p is over at now. Then a repeat of the
// request that got the place is a late job, which takes a new one. It is false if p
// gives no places.
func past(p policy.Policy, place, now int64) bool {
	return p.Queues() && slices.ContainsFunc(p.Rates(), func(r policy.Rate) bool {
		return r.Kind == "reservoir" && windowOf(r, place) < windowOf(r, now)
	})
}

// toldPlace reports whether an answer to e can be about c: the window of its place is not
// over.
func (e *ending) toldPlace(c entry) bool { return !past(e.call.Policy, c.place, e.now) }

// moved notes that a late job has got a new place instead of its old one. The old place
// stays taken.
func (x *explorer) moved(l *ledger, w *written) error {
	id, item := x.idOf(w.slot), w.item
	i := slices.IndexFunc(l.entries, func(e entry) bool { return e.id == id && e.item == item && !e.forgotten })
	if i < 0 {
		return fmt.Errorf("%s gives up the place of %s, which has none", name(w.slot), name(int(id)))
	}
	e := &l.entries[i]
	if !past(w.call.Policy, e.place, w.write.Now) {
		return fmt.Errorf("%s gives up its place at %s, whose window is not over", name(w.slot), moment(e.place))
	}
	e.forgotten, e.aliveFor = true, w.inFlight
	return x.counted(l, w)
}
