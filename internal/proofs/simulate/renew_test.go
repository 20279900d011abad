package simulate_test

import (
	"math"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// byReceipt reports whether requests of v name actions by their receipt.
func byReceipt(v ratelimit.Op) bool { return v == ratelimit.Release || v == ratelimit.Renew }

// keep lets a client keep what it was granted in a log. It renews once or more often.
// Sometimes a copy of a renewal arrives as well. Then it gives back by the new receipt or
// by an older one.
func (s *sim) keep(in *instance, c call, d ratelimit.Decision) {
	slots := c
	slots.At, slots.Count, slots.Partial = d.At, d.Granted, false
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

// receipt returns the receipt of the actions that a request at now names with the receipt
// at. Once they were renewed, an older receipt of the same id stands for the newest one.
// That can be the receipt of an earlier count that was given back: as long as the item
// knows the renewal, nothing tells the two counts apart.
func (r *record) receipt(at, now int64) int64 {
	switch {
	case r == nil || r.over || !r.renewed || at >= r.at:
	case (slices.Contains(r.older, at) || slices.Contains(r.lives, at)) && now-r.at <= r.by.kept():
		return r.at
	}
	return at
}

// receipts returns all receipts of a request so far.
func (r *record) receipts() []int64 {
	if r == nil {
		return nil
	}
	return append(append(slices.Clone(r.lives), r.older...), r.at)
}

// earlier reports whether at is a receipt from before r was counted or renewed, and the item
// takes it for one of r, because it keeps the id without its time.
func (u *user) earlier(r *record, id string, at int64) bool {
	return r != nil && !r.over && (u.old[receipt(id, at)] || slices.Contains(r.lives, at) && !u.given[receipt(id, at)])
}

// renewed judges a renewal that the store has performed.
func (l *ledger) renewed(u *user, a *landing, w ratelimit.Write, before ratelimit.Item) {
	s, o := l.sim, a.op
	name := counter{o.id, w.Key.Window}
	r := u.records[name]
	log, rate := u.Slots(o.terms.numbers)
	at, n := o.request.At, o.request.Count*oracle.Cost(rate)
	own := r != nil && !r.over && r.at == at && r.n >= o.request.Count
	older := u.earlier(r, o.id, at)
	moved, gone := log.Counted(w.Note, policy.Rate{}, before.State, a.item.State), log.Counted(at, policy.Rate{}, before.State, a.item.State)
	switch {
	case !log.Holds(w.Now, at, n, true):
		s.wrong("%s renews %d of %d, which do not count: %v", o.name, n, at, u)
	case !own && !older && w.Now-at <= o.remembered(): // later, slots of one millisecond are alike
		s.wrong("%s renews %d of %d, which were given back or never counted", o.name, n, at)
	case w.Note != at && (moved != n || gone != -n):
		s.wrong("%s renews %d of %d: %d slots are gone, and %d are of now", o.name, n, at, -gone, moved)
	}
	u.Move(o.terms.numbers, at, w.Note, o.request.Count)
	if !own {
		s.stats[oldReceipts]++
		if r == nil || r.over { // it is known by its id again
			r = &record{by: o, n: o.request.Count, order: s.stats[writes], lives: r.receipts()}
			u.records[name] = r
		}
	}
	if w.Note != at {
		r.older = append(r.older, at)
	}
	if !own { // from now on the id stands for these actions, and not for those of its last count
		r.lives = append(r.lives, r.at)
	}
	r.at, r.now, r.renewed, r.whole = w.Note, w.Now, true, false
	s.stats["of these, renewals"]++
	s.line("the store renews %d of %s at %d", n, o.name, w.Note)
}

// mustRenew reports whether a renewal or a release has to find the slots of r, although
// its receipt is that of a renewal, or is an older one. A clock behind can have counted an id
// again with the receipt of its first count, and then the release of that one was the second's.
func (u *user) mustRenew(r *record, o *op, now int64) bool {
	if r == nil || r.over {
		return false
	}
	log, rate := u.Slots(o.terms.numbers)
	return r.n >= o.request.Count && (o.request.At == r.at || slices.Contains(r.older, o.request.At)) && r.remembers(now) &&
		!u.given[receipt(o.id, r.at)] && (o.kind == ratelimit.Renew || !u.given[receipt(o.id, o.request.At)]) && log.Holds(max(now, r.at), r.at, o.request.Count*oracle.Cost(rate), false)
}

// judgeRenew judges a renewal that the store has answered.
func (l *ledger) judgeRenew(o *op, d ratelimit.Decision) {
	s, a := l.sim, o.last
	switch d.Reason {
	case ratelimit.OK:
		r := l.user(o.owner()).records[counter{o.id, 0}]
		apart := o.whole != nil && slices.ContainsFunc(o.whole.parts, func(p *op) bool { return p.last != nil && p.last.at != a.at }) // by another renewal under way
		if !d.Allowed || d.Granted != o.request.Count || r == nil || d.At != r.at && !slices.Contains(r.older, d.At) && (d.At != 0 || !apart) {
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
