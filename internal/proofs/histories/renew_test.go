package histories_test

import "github.com/cric-talk/guards/internal/ratelimit"

// A costly is a limit of which one action takes as many units as its cost. Its figures are
// in actions. Most is a multiple of the cost, so what is left is most less what is used.
type costly struct {
	promise

	cost int64
}

// costs returns p for actions with this cost; 0: one unit.
func costs(p promise, cost int64) promise {
	if cost < 2 {
		return p
	}
	return costly{p, cost}
}

// bare returns p in units.
func bare(p promise) promise {
	if c, ok := p.(costly); ok {
		return c.promise
	}
	return p
}

func (p costly) take(a account, now, latest, n int64) (account, int64, bool) {
	return p.promise.take(a, now, latest, n*p.cost)
}

func (p costly) undo(a account, now, at, n int64) (account, bool) {
	return p.promise.undo(a, now, at, n*p.cost)
}

func (p costly) most() int64 { return p.promise.most() / p.cost }

func (p costly) used(a account, now int64) int64 {
	return (p.promise.used(a, now) + p.cost - 1) / p.cost
}

// mostSlots is the most that a log counts.
const mostSlots = 100

// slots returns the log among the limits, and its number.
func (t tier) slots() (p promise, i int, ok bool) {
	for i, p := range t.limits {
		if _, ok := bare(p).(log); ok && !t.Queues() {
			return p, i, true
		}
	}
	return nil, 0, false
}

// move changes the time of n actions of a log to now, or returns false if they do not
// count. It returns false too if that makes it more than the limit: a clock ahead has seen
// them expire, and has admitted others.
func (t tier) move(s *state, c *call, from int64) (*state, bool) {
	p, i, _ := t.slots()
	a, ok := p.undo(s.accounts[i], c.now, from, c.n)
	if !ok {
		return s, false
	}
	after := s.copied()
	all := bare(p).(log)
	before := all.counting(s.accounts[i], max(c.now, s.latest))
	all.limit = mostSlots
	after.accounts[i], _, _ = costs(all, t.Rates()[i].Cost).take(a, c.now, s.latest, c.n)
	if n := all.counting(after.accounts[i], max(c.now, s.latest)); n > before && n > t.top {
		return s, false
	}
	kept := after.ids[t.name(c)]
	kept.at, kept.renewed = c.now, true
	after.ids[t.name(c)] = kept
	after.latest = max(after.latest, c.now)
	return after.sealed(), true
}

// renewed returns the states that can follow a renewal, each with the receipt that its
// caller is told; 0: expired. A slot that has expired by the latest clock may be taken.
//
// An id can be counted again after a release or a reset. The contract does not speak of a
// renewal with a receipt of before.
func (t tier) renewed(s *state, c *call) (next []*state, at []int64) {
	kept, known := s.ids[t.name(c)]
	p, i, _ := t.slots()
	counts := func(now int64) bool {
		_, ok := p.undo(s.accounts[i], now, kept.at, c.n)
		return ok
	}
	switch {
	case !known:
		return []*state{s}, []int64{0}
	case !kept.has(c.at):
		next, at = []*state{s, s}, []int64{0, kept.at}
		if after, ok := t.move(s, c, c.at); ok {
			next, at = append(next, after), append(at, c.now)
		}
		return next, at
	case !counts(max(c.now, s.latest)): // nobody else is sure that it counts
		next, at = []*state{s}, []int64{0}
	}
	switch after, ok := t.move(s, c, kept.at); {
	case c.at != kept.at || c.now < kept.at: // another renewal has come before
		if counts(max(c.now, kept.at)) {
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
