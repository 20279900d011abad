package histories_test

import (
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// move changes the time of n actions of a log to now, or returns false if they do not
// count. It returns false too if that makes it more than the limit: a clock ahead has seen
// them expire, and has admitted others.
func (t tier) move(s *state, c *call, from int64) (*state, bool) {
	log, r := s.account.Slots(t.numbers)
	if !log.Holds(c.now, from, c.n*oracle.Cost(r), true) {
		return s, false
	}
	after := s.copied()
	after.account.Move(t.numbers, from, c.now, c.n)
	moved, _ := after.account.Slots(t.numbers)
	if n := moved.Used(c.now, r, false); n > log.Used(c.now, r, false) && n > t.top {
		return s, false
	}
	kept := after.ids[t.name(c)]
	kept.at, kept.renewed, after.moved = c.now, true, true
	after.ids[t.name(c)] = kept
	return after.sealed(), true
}

// renewed returns the states that can follow a renewal, each with the receipt that its
// caller is told; 0: expired. A slot that has expired by the latest clock may be taken.
//
// An id can be counted again after a release or a reset. The contract does not speak of a
// renewal with a receipt of before. It can move another action of that time, and from then on
// the item can take that time for the check's.
func (t tier) renewed(s *state, c *call) (next []*state, at []int64) {
	kept, known := s.ids[t.name(c)]
	log, r := s.account.Slots(t.numbers)
	counts := func(now int64, strict bool) bool {
		return log.Holds(now, kept.at, c.n*oracle.Cost(r), strict)
	}
	switch {
	case !known:
		return []*state{s}, []int64{0}
	case !kept.has(c.at):
		next, at = []*state{s, s}, []int64{0, kept.at}
		if after, ok := t.move(s, c, c.at); ok {
			earlier := after.copied()
			kept = after.ids[t.name(c)]
			kept.since = c.at
			earlier.ids[t.name(c)] = kept
			next, at = append(next, after, earlier.sealed()), append(at, c.now, c.now)
		}
		return next, at
	case !counts(c.now, false): // nobody else is sure that it counts
		next, at = []*state{s}, []int64{0}
	}
	switch after, ok := t.move(s, c, kept.at); {
	case c.at != kept.at || c.now < kept.at: // another renewal has come before
		if counts(max(c.now, kept.at), true) {
			next, at = append(next, s), append(at, kept.at)
		}
	case ok:
		next, at = append(next, after), append(at, c.now)
	}
	return next, at
}

// renew returns the states that can follow a renewal that is answered d.
func (t tier) renew(s *state, c *call, d *ratelimit.Decision) (next []*state) {
	states, receipts := t.renewed(s, c)
	switch c.part {
	case maybe, effect:
		return append(states, s)
	case figures: // the renewal itself has taken effect before
		kept, known := s.ids[t.name(c)]
		if d.Reason == ratelimit.OK {
			return only(s, known && kept.at == d.At && (d.At == c.now || d.At > c.at) && t.toldSlots(s, c, d, d.At))
		}
		for _, at := range receipts {
			next = append(next, only(s, at == 0 && t.toldSlots(s, c, d, 0))...)
		}
		return next
	case whole:
	}
	for i, after := range states {
		next = append(next, only(after, t.toldSlots(after, c, d, receipts[i]))...)
	}
	return next
}

// toldSlots reports whether d is the answer to a renewal with this receipt; 0: expired.
func (t tier) toldSlots(s *state, c *call, d *ratelimit.Decision, at int64) bool {
	if at == 0 {
		return !d.Allowed && d.Reason == ratelimit.Expired && d.Granted == 0 && d.At == 0 && t.shows(s, c, d, 0)
	}
	return d.Allowed && d.Reason == ratelimit.OK && d.Granted == c.n && d.At == at && t.shows(s, c, d, 0)
}
