package simulate_test

import (
	"math"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// keep lets a client keep what it was granted in a log. It renews once or more often.
// Sometimes a copy of a renewal arrives as well. Then it gives back by the new receipt or
// by an older one.
func (s *sim) keep(in *instance, c call, d ratelimit.Decision) {
	slots := s.withOtherNumbers(c)
	slots.At, slots.Count, slots.Partial = d.At, d.Granted, false
	if s.chance(15) {
		slots.At = s.wrongReceipt(slots.At)
	}
	after := s.upTo(6000)
	if s.chance(3) {
		after = s.upTo(s.of(s.named(c.Activity).Limit).numbers.Longest() * 5 / 4)
	}
	s.at(s.now+after, func() {
		in.send(ratelimit.Renew, slots, math.MaxInt64, func(_ *op, kept ratelimit.Decision, err error) {
			if err != nil || kept.At == 0 || s.chance(4) { // the answer is lost, or the client forgets it
				kept.At, kept.Granted = slots.At, slots.Count
			}
			if s.chance(2) {
				s.keep(s.any(), c, kept)
			} else {
				s.giveBack(s.any(), c, kept)
			}
		})
	})
	if s.chance(4) {
		s.at(s.now+after+s.upTo(3000), func() { s.any().send(ratelimit.Renew, slots, math.MaxInt64, nil) })
	}
}

// renewed judges a renewal that the store has performed.
func (l *ledger) renewed(u *user, a *landing, w ratelimit.Write, before ratelimit.Item) {
	s, o := l.sim, a.op
	name := counter{o.id, w.Key.Window}
	r := u.records[name]
	log, rate := u.Slots(o.terms.numbers)
	at, n := o.request.At, o.request.Count*oracle.Cost(rate)
	named, own := r.names(at)
	named = named && w.Drop.Set != "" // the item had the id
	moved, gone := log.Counted(w.Note, policy.Rate{}, before.State, a.item.State), log.Counted(at, policy.Rate{}, before.State, a.item.State)
	switch {
	case named && !own && gone == -n: // slots of another check, by its receipt: an item can't tell whose they are
		s.stats["receipts of another check that freed slots of their own millisecond"]++
	case !log.Holds(max(w.Now, at), at, n, true):
		s.wrong("%s renews %d of %d, which do not count: %v", o.name, n, at, u)
	case named && at != r.at, !named && w.Now-at < o.remembered(): // later, slots of one millisecond are alike
		s.wrong("%s renews %d of %d, which were given back, moved or never counted: the store has %s", o.name, n, at, r)
	case w.Note != at && (moved != n || gone != -n):
		s.wrong("%s renews %d of %d: %d slots are gone, and %d are of now", o.name, n, at, -gone, moved)
	}
	if o.whole != nil {
		for _, p := range o.whole.parts {
			if p.vain {
				s.wrong("%s moves slots, and those of %s were gone before", o.name, p.name)
			}
		}
	}
	u.Move(o.terms.numbers, at, w.Note, o.request.Count)
	if !named { // it is known by its id again, and the time of its check is unknown
		next := &record{by: o, n: o.request.Count, order: s.stats[writes]}
		if r != nil {
			next.lives = r.lives + 1
		}
		r = next
		u.records[name] = r
	} else if !r.renewed { // from now on, the item takes this receipt for the time of the check
		r.counts, r.check = r.moment(at).Counts, at
	}
	if w.Note != at {
		r.older = append(r.older, at)
	}
	r.at, r.now, r.renewed, r.whole, r.mover, r.kept = w.Note, w.Now, true, false, o, s.stats[writes]
	s.stats["of these, renewals"]++
	s.line("the store renews %d of %s at %d", n, o.name, w.Note)
}

// mustRenew reports whether a renewal has to find the slots of r, by their receipt or by an
// older one.
func (u *user) mustRenew(r *record, o *op, now int64) bool {
	_, own := r.names(o.request.At)
	if !own || r.n < o.request.Count || u.given[receipt(o.id, r.at)] != nil {
		return false
	}
	log, rate := u.Slots(o.terms.numbers)
	now = max(now, r.at)
	known := u.remembers(r, now) || o.request.At == r.at && now-r.at >= o.remembered()
	return known && log.Holds(now, r.at, o.request.Count*oracle.Cost(rate), false)
}

// inVain reports whether the slots that o, a renewal, is about are gone already.
func (o *op) inVain() bool {
	u := o.in.sim.ledger.user(o.owner())
	log, rate := u.Slots(o.terms.numbers)
	if log == nil {
		return false
	}
	at := o.request.At
	if r := u.records[counter{o.id, 0}]; r != nil && r.renewed {
		if named, _ := r.names(at); named {
			at = r.at
		}
	}
	return !log.Holds(max(o.now, at), at, o.request.Count*oracle.Cost(rate), true)
}

// judgeRenew judges a renewal that the store has answered. Before its answer arrives, others can have
// given the slots back and counted the check again.
func (l *ledger) judgeRenew(o *op, d ratelimit.Decision) {
	s, a := l.sim, o.last
	switch d.Reason {
	case ratelimit.OK:
		r := l.user(o.owner()).records[counter{o.id, 0}]
		apart := o.whole != nil && slices.ContainsFunc(o.whole.parts, func(p *op) bool { return p.last != nil && p.last.at != a.at }) // by another renewal under way
		has := func(r *record) bool { return r != nil && (d.At == r.at || slices.Contains(r.older, d.At)) }
		if !d.Allowed || d.Granted != o.request.Count || r == nil || !has(r) && !has(a.rec) && (d.At != 0 || !apart) {
			s.wrong("%s is told ok with the receipt %d, granted %d, and the store has %s", o.name, d.At, d.Granted, r)
		}
	case ratelimit.Expired:
		if a.must || d.Allowed || d.Granted != 0 || d.At != 0 {
			s.wrong("%s is told expired, allowed %v, granted %d, receipt %d; it has to be found: %v", o.name, d.Allowed, d.Granted, d.At, a.must)
		}
	default:
		s.wrong("%s is told %s", o.name, d.Reason)
	}
	l.judgeFigures(o, d, a.figures, [2]int64{})
}
