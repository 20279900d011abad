package simulate_test

import (
	"slices"

	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// byReceipt reports whether requests of v name actions by their receipt.
func byReceipt(v ratelimit.Op) bool { return v == ratelimit.Release || v == ratelimit.Renew }

// names reports whether the item takes x for a receipt of r, and whether it is one. An item
// knows the time of a check only by the set that has its id, unless its slots were renewed.
func (r *record) names(x int64) (named, own bool) {
	switch {
	case r == nil || r.over:
		return false, false
	case r.renewed:
		return r.check <= x && x <= r.at, x == r.check || x == r.at || slices.Contains(r.older, x)
	case r.whole:
		return true, x == r.check
	}
	return x/r.by.generation() == r.check/r.by.generation(), x == r.check
}

// generation returns for how long ids are kept in the same set, in milliseconds.
func (o *op) generation() int64 {
	if o.holds() {
		return 300_000
	}
	return 7000
}

// moment returns when the actions of the receipt x count.
func (r *record) moment(x int64) oracle.Moment {
	if r.renewed {
		return oracle.Moment{Came: r.at, Counts: r.counts}
	}
	w := oracle.Moment{Came: x, Counts: x}
	if r.counts > r.check { // a note tells it
		w.Counts = max(x, r.counts)
	}
	return w
}

// presents returns the receipt that o, a release, presents to its item. A part without slots
// is asked with the time of the check, if a part with slots knows that time. Not sure: a part
// with slots may have forgotten the check, and then it is unknown whether this receipt comes
// from a renewal.
func (o *op) presents() (x int64, sure bool) {
	x, sure = o.request.At, true
	if o.whole == nil || o.gives != nil || o.kind != ratelimit.Release || o.terms.HasLog() {
		return x, sure
	}
	for _, p := range o.whole.parts {
		if !p.terms.HasLog() {
			continue
		}
		if p.last != nil && p.last.check > 0 {
			return p.last.check, true
		}
		sure = false
	}
	return x, sure
}

// renewedFrom reports whether o, a release, has a receipt of slots that were renewed, and
// whose check came then.
func (o *op) renewedFrom(check int64) bool {
	return slices.ContainsFunc(o.whole.parts, func(p *op) bool {
		r := o.in.sim.ledger.user(p.owner()).records[counter{p.id, 0}]
		return r != nil && r.renewed && r.check == check && check <= o.request.At && o.request.At <= r.at
	})
}

// checkOf returns when the check came that a release by the receipt x names, as the item
// knows it; 0: perhaps it does not know.
func (u *user) checkOf(r *record, id string, x, now int64) int64 {
	named, _ := r.names(x)
	latest := max(now, u.wrote)
	switch back := u.given[receipt(id, x)]; {
	case back != nil && !back.gone && within(latest, back.now, 18_000):
		return back.check
	case back != nil && !back.gone && within(now, back.now, 30_000), !named || !u.remembers(r, now):
		return 0
	case r.renewed:
		return r.check
	}
	return x
}

func within(a, b, most int64) bool { return max(a-b, b-a) <= most }

// mustGiveBack reports whether a release has to give back the actions of r at now.
func (u *user) mustGiveBack(r *record, o *op, now int64) bool {
	x, sure := o.presents()
	_, own := r.names(x)
	if !sure || !own || r.n < o.request.Count || u.given[receipt(o.id, x)] != nil {
		return false
	}
	log, rate := u.Slots(o.terms.numbers)
	now = max(now, r.at)
	known := u.remembers(r, now)
	if log != nil && log.Holds(now, r.at, o.request.Count*oracle.Cost(rate), false) && (known || x == r.at && now-x >= o.remembered()) {
		return true
	}
	inTime := r.check != 0 && now-r.check <= o.remembered() || r.whole
	return known && inTime && u.Holds(o.terms.numbers, now, r.moment(x), o.request.Count, false)
}

// gaveBack judges a release that the store has performed.
func (l *ledger) gaveBack(u *user, a *landing, w ratelimit.Write, before ratelimit.Item) {
	s, o := l.sim, a.op
	r, n := u.records[counter{o.id, w.Key.Window}], o.request.Count
	x, sure := o.presents()
	if !sure && r != nil && o.renewedFrom(r.check) { // a part with slots has known it after all
		x = r.check
	}
	named, own := r.names(x)
	named = named && w.Drop.Set != "" // the item had the id
	when := oracle.Moment{Came: x, Counts: x}
	if named {
		when = r.moment(x)
	}
	check := x
	if named && r.renewed {
		check = r.check
	}
	now := max(w.Now, when.Came, when.Counts)
	late := !named || !r.whole && now-check > o.promised()
	log, rate := u.Slots(o.terms.numbers)
	if log != nil && named && !own && log.Counted(when.Came, rate, before.State, a.item.State) != 0 { // an item can't tell whose slots these are
		s.stats["receipts of another check that freed slots of their own millisecond"]++
	}
	back := u.given[receipt(o.id, x)]
	idOnly := o.gives != nil && o.gives.kind == ratelimit.Check && slices.Equal(before.State, a.item.State)
	slotsOnly := log != nil && (late || o.gives != nil && o.gives.kind == ratelimit.Renew)
	switch {
	case back != nil && !back.gone && within(w.Now, back.now, 18_000):
		s.wrong("%s gives back %d of %d twice", o.name, n, x)
	case late && log == nil, !named && w.Now-x < o.remembered():
		s.wrong("%s gives back %d of %d too late, or twice, or what was never counted: the store has %s", o.name, n, x, r)
	case idOnly && named && u.Holds(o.terms.numbers, now, when, n, false) && !r.lapsed:
		s.wrong("%s removes the id of %d, and leaves %d that count: %v", o.name, x, n, u)
	case idOnly && named: // "Refusals are not remembered" (docs/events.md), even if nothing of it counts any more
	case slotsOnly && !log.Holds(now, when.Came, n*oracle.Cost(rate), true), !slotsOnly && !u.Holds(o.terms.numbers, now, when, n, true) && (!o.request.Clear || u.changed < o.began): // clear asks for no count
		s.wrong("%s gives back %d of %d, which do not count: %v", o.name, n, x, u)
	}
	u.given[receipt(o.id, x)] = &release{now: w.Now, check: check}
	l.keeps(o, before, a.item, false)
	if idOnly && named {
		l.ended(u, r, o, own)
		s.stats[idsOnly]++
		s.line("the store removes the id of %s, of which nothing counts any more", o.name)
		return
	}
	if slotsOnly {
		log.Back(now, when.Came, n*oracle.Cost(rate))
	} else {
		gave := u.Back(o.terms.numbers, now, when, n, before.State, a.item.State, u.changed >= o.began)
		if named {
			u.unsay(r.by, gave, when.Counts, n)
		}
	}
	switch {
	case named:
		l.ended(u, r, o, own)
	case r != nil && !r.over && r.at == x: // the item had forgotten its id
		r.over = true
	}
	if named && own && x != r.at {
		s.stats[oldReceipts]++
		if !slotsOnly {
			s.had(o.request.Activity, "all given back after a renewal")
		}
	}
	if o.request.Hold && w.Now-x > 28_000 {
		s.stats["releases that gave something back after more than 28 s, because of Hold"]++
	}
	u.makeRoom(s.now, o)
	s.line("the store gives back %d of %s (slots only: %v)", n, o.name, slotsOnly)
}

// keeps requires that a write keeps its id for 15 minutes only if that is promised. The id of
// a release is kept for 20 s, also with Hold.
func (l *ledger) keeps(o *op, before, after ratelimit.Item, hold bool) {
	for _, set := range after.IDs {
		if len(set.Elements) > len(before.IDs.In(set.Name)) && hold != (set.Name[0] == 'h') && set.Name != "ids" {
			l.sim.wrong("%s keeps its id in the set %s; it is one of 5 minutes: %v", o.name, set.Name, hold)
		}
	}
}

// ended notes that the count r was given back by o. A check that was refused gives back only
// what it has counted itself and nobody else relies on. After a reset, an item can't tell a
// later count of the same seconds from that.
func (l *ledger) ended(u *user, r *record, o *op, own bool) {
	r.over = true
	if !own {
		l.sim.stats[similar]++
	}
	if o.gives == nil || o.gives.kind != ratelimit.Check || r.by != o.gives && u.deleted >= o.gives.began {
		return
	}
	r.taken = true
	switch {
	case r.by != o.gives:
		l.sim.wrong("%s, but another decision has counted that: the store has %s", o.name, r)
	case r.relied:
		l.sim.wrong("%s, but another check was admitted because of that: the store has %s", o.name, r)
	}
}
