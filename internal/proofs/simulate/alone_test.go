package simulate_test

import (
	"strconv"

	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// alone is what an instance has admitted for a user without the store. By itself,
// an instance never admits more than the limit.
type alone struct {
	*oracle.Account

	ids      map[counter]*record // its own admissions
	perhaps  map[counter]bool    // prepaid ones that came from a lease, or are its own
	given    map[string]bool     // what it has given back, by receipts
	kept     int                 // how many writes of unknown outcome, or beside others, can have places there
	furthest int64               // the last of these places, perhaps by a tier with fewer in each window
	latest   int64               // up to which place other writes can have places there
	busy     int                 // decisions that give back now, perhaps some of it
	loose    bool                // it may have counted more, because it can have forgotten requests or not
}

func (in *instance) aloneOf(of owner) *alone {
	a, ok := in.alone[of]
	if !ok {
		a = &alone{Account: newAccount(in.sim.itemOf(of)), ids: map[counter]*record{}, perhaps: map[counter]bool{}, given: map[string]bool{}}
		in.alone[of] = a
	}
	return a
}

// forget notes that a reset has also cleared what the instance admitted alone.
func (in *instance) forget(o *op) {
	delete(in.seen, in.knows(o))
	if window, _ := o.terms.Item(o.now); window == 0 {
		delete(in.alone, o.owner())
	} else {
		in.aloneOf(o.owner()).Clear(window)
	}
}

// judgeAlone judges an answer from memory in an outage.
func (l *ledger) judgeAlone(o *op, d ratelimit.Decision) {
	s := l.sim
	s.reason(o, d)
	if d.Reason != ratelimit.Unavailable && d.Reason != ratelimit.Delayed {
		s.fail("%s: %s from memory, want unavailable", o.name, d.Reason)
	}
	if o.kind == ratelimit.Check && (d.Allowed || d.ReadyAt != 0) {
		l.admittedAlone(o, d)
	}
}

// admittedAlone judges an admission from memory, or a place.
func (l *ledger) admittedAlone(o *op, d ratelimit.Decision) {
	s := l.sim
	o.alone = true
	if o.in.repeats(o, l.user(o.owner()), o.placed(d)) {
		return
	}
	a := o.in.aloneOf(o.owner())
	n := max(1, d.Granted)
	if s := o.in.seen[o.in.knows(o)]; s != nil { // each place is after the places of both
		a.Skip(o.terms.numbers, o.now, s.Ticket(o.terms.numbers))
		s.Skip(o.terms.numbers, o.now, a.Ticket(o.terms.numbers))
	}
	known, fits := o.in.fitsSeen(o, n, d.ReadyAt)
	if !fits && !o.earlier {
		s.wrong("%s: instance %d alone admits %d of %s, and the state that it saw last has no room for them", o.name, o.in.number, n, o.terms.text)
	}
	when, fits := a.Give(o.terms.numbers, o.now, n, max(o.now, d.ReadyAt))
	begun := a.loose && len(lockouts(o.terms.Policy)) > 0 // perhaps by an attempt that the model does not have
	if !fits && !o.earlier && !begun {
		s.wrong("%s: instance %d alone admits %d more, which do not fit: %v", o.name, o.in.number, n, a)
	}
	a.loose = a.loose || d.ReadyAt > o.now && o.terms.Named() // for now: it can leave out limits beside a place at a border
	a.loose = a.loose || o.earlier && o.in.others(o)          // whose order is not known
	o.own, o.shown, o.ownAt, o.shownAt = a, o.in.seen[o.in.knows(o)], when, known
}

// giveBackAlone notes that the parts of o before the next one are given back in memory, if
// the instance has counted them there itself; nil: all. What another decision has found
// there stays.
func (o *op) giveBackAlone(next *op) {
	for _, p := range o.parts {
		if p == next {
			return
		}
		window, _ := p.terms.Item(p.now)
		name := counter{p.id, window}
		if p.own == nil || p.own != p.in.alone[p.owner()] || p.own.ids[name] == nil || p.own.ids[name].relied {
			continue
		}
		o.in.sim.stats[givenBackAlone]++
		p.own.Undo(p.terms.numbers, p.in.millis(), p.ownAt, p.request.Count)
		if p.shown != nil && p.shown == p.in.seen[p.in.knows(p)] {
			p.shown.Undo(p.terms.numbers, p.in.millis(), p.shownAt, p.request.Count)
		}
		p.own.loose = p.own.loose || p.own.given[receipt(p.id, p.now)] // a second one of the same millisecond is taken for a copy
		late := p.in.frozenUntil >= p.began && p.in.millis()-p.now > p.remembered()
		p.own.loose = p.own.loose || late // as any other release, it can give back nothing then
		p.own.given[receipt(p.id, p.now)] = true
		delete(p.own.ids, name)
		p.own = nil
	}
}

// sameAlone requires that the memory of an instance holds what it has admitted alone, and
// not what was given back.
func (l *ledger) sameAlone(o *op) {
	a := o.in.aloneOf(o.owner())
	if a.loose || a.busy > 0 || o.in.dead || l.sim.prepaid() { // an action from a lease can look the same
		return
	}
	window, _ := o.terms.Item(o.now)
	key := o.item()
	key.Window = window
	held := o.in.limiter.Memory.Recall(key).Fallback.State
	models := o.in.withKept(o, a.Account, held)
	if !models.Same(held) || window != 0 && !o.terms.Named() && a.Counted(window) != held.Get("activityCount") {
		l.sim.wrong("%s: instance %d has admitted alone %v, and its memory holds %v", o.name, o.in.number, a.Account, held)
	}
}

// busy notes that o begins to give back what it has counted, or has ended: 1 or -1.
func (o *op) busy(by int) {
	if o.giving == (by > 0) {
		return
	}
	o.giving = by > 0
	for _, p := range o.parts {
		if o.giving {
			p.held = p.in.aloneOf(p.owner())
		}
		p.held.busy += by
	}
}

// relyAlone notes that o was admitted, and relies on what other decisions have counted in
// memory. A part that the store has answered in the end relies on the store.
func (o *op) relyAlone() {
	for _, p := range o.parts {
		if p.last != nil && !p.lost {
			continue
		}
		window, _ := p.terms.Item(p.now)
		if a := p.in.alone[p.owner()]; a != nil {
			if r := a.ids[counter{p.id, window}]; r != nil && r.by != p {
				r.relied = true
			}
		}
	}
}

// repeats reports whether an instance knows a request already: it has admitted the
// request alone, or has seen that the store counted it. If the instance can have
// forgotten that, the model can't know what it counts, and starts its bounds
// again. So it does if others have renewed the slots since, because the instance knows the id
// only from before. And so it does if the instance perhaps learned it only after o was
// decided. A request whose place is over, where the instance knows it, is a late job, which
// has got place instead.
func (in *instance) repeats(o *op, u *user, place int64) bool {
	window, _ := o.terms.Item(o.now)
	name := counter{o.id, window}
	a, known := in.aloneOf(o.owner()), in.seen[in.knows(o)]
	mine, stored := a.ids[name], u.records[name]
	if known != nil && stored != nil && stored.order > known.order && !stored.again {
		stored = nil // it has not seen that
	}
	if mine != nil && o.late(mine) {
		mine = nil
	}
	if stored != nil && o.late(stored) && !stored.again { // it can know the place of an earlier count
		stored = nil
	}
	switch {
	case mine != nil && mine.remembers(o.now), !o.earlier && known != nil && stored != nil && !stored.over && !stored.again && stored.remembers(o.now) && stored.remembers(known.asked) && stored.kept <= known.order:
		return true
	case mine != nil, stored != nil, a.perhaps[name]:
		delete(in.alone, o.owner())
		in.aloneOf(o.owner()).ids, in.aloneOf(o.owner()).perhaps, in.aloneOf(o.owner()).loose = a.ids, a.perhaps, true
		delete(in.seen, in.knows(o))
		if mine == nil { // from now on it knows the request, found or admitted
			a.ids[name] = &record{by: o, now: o.now, place: place, whole: u.whole(o, window)}
		}
		return true
	}
	a.ids[name] = &record{by: o, now: o.now, place: place, whole: u.whole(o, window)}
	return false
}

// judgePlace judges an answer to a place that was presented on time or early. The
// store is not asked.
func (l *ledger) judgePlace(o *op, d ratelimit.Decision) {
	window, _ := o.queue()
	due, current := o.request.ReadyAt/window, o.now/window
	ok := false
	switch {
	case due == current:
		ok = d.Reason == ratelimit.OK && d.Allowed && d.Granted == 1
	case due > current:
		ok = d.Reason == ratelimit.Delayed && !d.Allowed && d.ReadyAt == o.request.ReadyAt && d.Wait.Milliseconds() == d.ReadyAt-o.now
	}
	if !ok {
		l.sim.fail("%s presents %d at %d, and is told %s at %d", o.name, o.request.ReadyAt, o.now, d.Reason, d.ReadyAt)
	}
}

// judgeRepeat judges a refusal that the instance repeats from memory. What it has
// seen is at most a second old. A release, a reset or a clock that has stepped
// back can make the refusal too old, for at most as long. An instance never refuses
// what it has given back itself.
func (l *ledger) judgeRepeat(o *op, d ratelimit.Decision) {
	s := l.sim
	s.stats["refusals repeated from memory"]++
	u := l.user(o.owner())
	if _, skips := o.skipped(u.Account, o.now); skips {
		return
	}
	need := o.request.Count
	if o.request.Partial {
		need = 1
	}
	trusted := int64(1000)
	if s.now-o.in.stepped < 60_000 {
		trusted += o.in.step
	}
	own := u.freer != nil && u.freer.in == o.in && u.freer.ended && o.in.stepped < u.freer.began &&
		u.freed <= min(o.began, u.freer.endedAt) && u.freed == u.freedFor(o.terms)
	switch {
	case d.Reason != ratelimit.Limited || o.kind != ratelimit.Check:
		s.wrong("%s is told %s without a request, want limited", o.name, d.Reason)
	case o.terms.Prepaid(): // a hot key refuses for up to a second what it saw no room for, even if actions come back
	case u.Fits(o.terms.numbers, o.now, need, true) && u.FitsAt(o.terms.numbers, oracle.Moment{Came: o.now, Counts: o.now}, need, true) && (own || u.freedFor(o.terms) < s.now-trusted):
		s.wrong("%s is refused from memory, and it fits; this instance made the room: %v", o.name, own)
	case u.changed < s.now-trusted-1000: // what the instance knows is what the store has
		l.judgeFigures(o, d, u.Figures(o.terms.numbers, o.now), [2]int64{u.Wait(o.terms.numbers, o.now, need, false), u.Wait(o.terms.numbers, o.now, need, true)})
	}
}

// placeID returns the id under which the ledger keeps a check that presents a
// place.
func placeID(r ratelimit.Request) string { return r.ID + " at " + strconv.FormatInt(r.ReadyAt, 10) }
