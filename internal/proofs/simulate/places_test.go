package simulate_test

import (
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// late reports whether the place that o's id has by r is over, or is one that o's limit
// does not give. Then o is a late job, which takes a new place.
func (o *op) late(r *record) bool {
	queue, ok := o.queue()
	return ok && r.place != 0 && (r.place%queue != 0 || r.place/queue < o.now/queue)
}

// queue returns the window of the reservoir among o's limits, in milliseconds.
func (o *op) queue() (window int64, ok bool) {
	for _, r := range o.terms.numbers.Rates {
		if r.Kind == "reservoir" {
			return r.Window.Milliseconds(), true
		}
	}
	return 0, false
}

// moves reports whether a write gives a late job a new place instead of the one of r.
func (o *op) moves(w ratelimit.Write, r *record) bool {
	if w.Drop.Set == "" {
		return false
	}
	if !o.late(r) {
		o.in.sim.wrong("%s gives up the place %d, which is not over at %d", o.name, r.place, o.now)
	}
	o.in.sim.stats[newPlaces]++
	return true
}

// placed returns the place that an answer from memory tells: a later one, or the current
// window; 0: the limit gives none.
func (o *op) placed(d ratelimit.Decision) int64 {
	queue, ok := o.queue()
	if !ok {
		return 0
	}
	return max(d.ReadyAt, o.now/queue*queue)
}

// given returns the ticket of the places that an instance has given o's user from memory; 0:
// none.
func (in *instance) given(o *op) int64 {
	if _, ok := o.queue(); !ok {
		return 0
	}
	state := in.limiter.Memory.Recall(o.item()).Fallback.State
	for _, r := range o.terms.numbers.Rates {
		if r.Kind == "reservoir" && r.Name != "" {
			return state.Get(r.Name + "_t")
		}
	}
	return state.Get("t")
}

// skipped returns what a holds with the places that o's instance gave from memory, if they
// lie ahead.
func (o *op) skipped(a *oracle.Account, now int64) (*oracle.Account, bool) {
	after := a.Clone()
	skips := after.Skip(o.terms.numbers, now, o.in.given(o))
	return after, skips
}

// skips notes that a write has skipped the places that its instance gave from memory. The
// instance keeps the place of the write, too.
func (l *ledger) skips(u *user, a *landing, when oracle.Moment) {
	o, after := a.op, a.item.State
	if _, ok := o.queue(); !ok {
		return
	}
	plain, counted, exact := u.Clone(), u.Clone(), u.Clone()
	alone := o.in.aloneOf(u.owner)
	known := !alone.loose && u.deleted == 0 && !o.alone && !o.in.others(o) // what the instance had given when it planned this
	_ = plain.CountAt(o.terms.numbers, when, 1)
	if plain.Same(after) {
		last := alone.Ticket(o.terms.numbers)
		if known && plain.Ticket(o.terms.numbers) <= last && counted.Skip(o.terms.numbers, when.Came, last) {
			l.sim.wrong("%s takes a place that its instance has given from memory, up to %d there: %v; the item has %v", o.name, a.given, alone.Account, u)
		}
		return
	}
	for _, ticket := range []int64{after.Get("t"), after.Get(o.queueName() + "_t")} {
		if ticket != 0 && ticket <= a.given && counted.Skip(o.terms.numbers, when.Came, ticket-1) {
			l.sim.stats[skippedPlaces]++
			u.Account = counted
		}
	}
	if !known || a.again {
		return
	}
	exact.Skip(o.terms.numbers, when.Came, alone.Ticket(o.terms.numbers))
	takes := func() bool { // whether the write takes the next place
		next := exact.Clone()
		_ = next.CountAt(o.terms.numbers, when, 1)
		exact.Skip(o.terms.numbers, when.Came, next.Ticket(o.terms.numbers))
		return next.Same(after)
	}
	for range alone.kept + 1 {
		if takes() {
			return
		}
	}
	if exact.Skip(o.terms.numbers, when.Came, alone.furthest); takes() {
		return
	}
	l.sim.wrong("%s skips places up to %d, and its instance has given %v", o.name, a.given, alone.Account)
}

// keeps notes that a write has taken a place, and that its instance has given places from memory.
// As long as these lie ahead, the memory keeps the place that the write was planned with, which
// can be an earlier one.
func (in *instance) keeps(a *landing) {
	if a.done && a.given != 0 {
		alone := in.aloneOf(a.op.owner())
		alone.latest = max(alone.latest, a.snapshot.Ticket(a.op.terms.numbers))
	}
}

// withKept returns what models hold, with the places that the memory holds beside, if writes can
// have kept them there.
func (in *instance) withKept(o *op, models *oracle.Account, held policy.State) *oracle.Account {
	alone, with := in.aloneOf(o.owner()), models.Clone()
	if with.GiveAll(held); alone.kept > 0 || in.others(o) || with.Ticket(o.terms.numbers) <= alone.latest {
		return with
	}
	return models.Clone()
}

// others reports whether the instance has decided about the item of o while o was under way. What
// they wrote has places of its own.
func (in *instance) others(o *op) bool {
	return slices.ContainsFunc(in.sim.begun, func(other *op) bool {
		return other != o && other != o.whole && other.in == in && (!other.ended || other.endedAt >= o.began) &&
			slices.ContainsFunc(other.each(), func(p *op) bool { return p.owner() == o.owner() })
	})
}

func (o *op) queueName() string {
	for _, r := range o.terms.numbers.Rates {
		if r.Kind == "reservoir" {
			return r.Name
		}
	}
	return ""
}

// skips reports whether the answer to o skips places that its instance gave from memory. They
// can have changed while the answer was under way, so its figures can't be known. A write that
// was planned before its item was deleted skips none, and the figures do. A write that only
// records the pace of a refusal takes no place.
func (o *op) skips() bool {
	_, skips := o.skipped(o.last.snapshot, o.now)
	skips = o.last.snapshot.Clone().Skip(o.terms.numbers, o.now, o.last.given) || skips
	return (!o.last.done || o.last.bare || o.in.sim.ledger.user(o.owner()).void) && (skips || o.last.skips)
}
