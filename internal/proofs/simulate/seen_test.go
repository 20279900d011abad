package simulate_test

import (
	"cmp"
	"math"

	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// seen is what an instance knows of a user's item: what the store last showed it,
// and what it has admitted alone since. An outage starts from there.
type seen struct {
	*oracle.Account

	order      int   // how many writes the store had performed
	asked      int64 // by its own clock: when the attempt began that showed this
	afterwards bool  // it has an admission from before the store showed this

	doubt int64 // since then, it has perhaps admitted a request alone, and then an older answer may have replaced this; 0: no
}

// learn notes what an answer of a decision has shown its instance; nil: there was none.
func (in *instance) learn(o *op, a *landing) {
	if a == nil || a.learned {
		return
	}
	a.learned = true
	name := in.knows(o)
	was := in.seen[name]
	if was != nil && a.clock < was.asked && was.asked <= in.millis() {
		return
	}
	now := &seen{Account: a.snapshot, order: a.order, asked: a.clock}
	if was != nil && a.clock < was.doubt {
		now.doubt = was.doubt
	}
	in.seen[name] = now
}

// asks notes that o puts another question to the store: about its next part, or to mark what it
// has found. So its last one has ended, and the instance knows what the store showed then.
// While a mark is under way, other decisions of the instance use that.
func (o *op) asks() {
	o.anew = true
	cmp.Or(o.turn, o).learns()
}

// learns notes that a question of o to the store has ended. The instance knows the last item
// that came, even if a refused mark brought it and nothing was answered after that.
func (o *op) learns() {
	o.in.learn(o, o.last)
	o.in.learn(o, o.refusal)
}

// knows returns the item that a decision is about.
func (in *instance) knows(o *op) itemKey {
	now := o.now
	if byReceipt(o.kind) {
		now = o.releasedAt()
	}
	window, _ := o.terms.Item(now)
	return itemKey{o.owner(), window}
}

// doubts notes that o begins to give back, and that parts without an answer were decided from
// memory. Whether one of them was admitted there is known only when o ends. "An answer from the
// table replaces Seen" (docs/adr/0003-memory.md) then, even if its attempt began earlier.
func (o *op) doubts() {
	for _, p := range o.parts {
		if s := o.in.seen[o.in.knows(p)]; s != nil && p.lost && !p.decided {
			s.doubt = o.in.millis()
		}
	}
}

// sameSeen requires that the memory of an instance holds what the store last showed it, and what
// it has admitted alone since.
func (l *ledger) sameSeen(o *op) {
	name := o.in.knows(o)
	s, a := o.in.seen[name], o.in.aloneOf(o.owner())
	if s == nil || s.afterwards || s.doubt != 0 || a.loose || a.busy > 0 || o.in.dead || l.sim.prepaid() { // as in sameAlone
		return
	}
	held := o.in.limiter.Memory.Recall(ratelimit.Key{UserID: name.user, Activity: name.item, Window: name.window}).Seen.State
	models := o.in.withKept(o, s.Account, held)
	same := models.Same(held)
	if name.window != 0 {
		same = s.Counted(name.window) == held.Get("activityCount")
	}
	if len(held) > 0 && !same {
		l.sim.wrong("%s: instance %d has seen %v, and its memory holds %v", o.name, o.in.number, s.Account, held)
	}
}

// fitsSeen counts n actions that the instance admits alone in what it has seen. It
// returns when they count there, and whether they fit.
func (in *instance) fitsSeen(o *op, n, place int64) (when oracle.Moment, fits bool) {
	s := in.seen[in.knows(o)]
	if s == nil {
		return when, true
	}
	s.asked = math.MinInt64 // whatever the store shows next is newer
	s.afterwards = s.afterwards || o.earlier
	when, fits = s.Give(o.terms.numbers, o.now, n, max(place, o.now))
	return when, fits || s.doubt != 0
}
