package histories_test

import "github.com/cric-talk/guards/internal/ratelimit"

// A call is one operation of a history, or a part of one.
type call struct {
	op      ratelimit.Op
	part    part
	tier    int
	id      string
	n       int64
	partial bool
	now     int64 // by the clock of the instance
	at      int64 // release, renew: the receipt
	clear   bool  // release: ends the series of each lockout, too
	fewer   bool  // a partial grant may be smaller than what fits, because others made room meanwhile
	raced   bool  // another operation may have changed the item between the look and the write
}

// A part is what of an operation happens at one moment.
//
// An answer that follows a lost attempt has two moments: the lost attempt may
// have taken effect at one, and the figures show the other. So such an
// operation is in the history twice, as an effect and as figures.
type part string

const (
	whole   part = ""        // it takes effect, and the answer shows the state right after that
	effect  part = "effect"  // it takes effect as the answer says
	figures part = "figures" // the answer shows the state
	maybe   part = "maybe"   // it is unknown whether it takes effect
)

// step returns the states that can follow s. There is none if the answer d
// breaks the contract.
func (sys system) step(s *state, c *call, d *ratelimit.Decision) []*state {
	t := sys[c.tier]
	switch c.op {
	case ratelimit.Check:
		return t.check(s, c, d)
	case ratelimit.Status:
		return only(s, t.status(s, c, d))
	case ratelimit.Release:
		return t.release(s, c, d)
	case ratelimit.Renew:
		return t.renew(s, c, d)
	case ratelimit.Reset:
		after := sys.reset(s, c)
		if c.part == maybe {
			return []*state{s, after}
		}
		return only(after, d.Reason == ratelimit.OK)
	}
	return nil
}

func (t tier) release(s *state, c *call, d *ratelimit.Decision) (next []*state) {
	switch c.part {
	case maybe:
		return append(t.undone(s, c), s)
	case effect:
		return t.undone(s, c)
	case figures:
		return only(s, t.shows(s, c, d, 0))
	case whole:
	}
	for _, after := range t.undone(s, c) {
		next = append(next, only(after, d.Reason == ratelimit.OK && t.shows(after, c, d, 0))...)
	}
	return next
}

func only(s *state, ok bool) []*state {
	if !ok {
		return nil
	}
	return []*state{s}
}

func (t tier) check(s *state, c *call, d *ratelimit.Decision) []*state {
	kept, known := t.known(s, c)
	switch {
	case c.part == maybe:
		return append(t.every(s, c, known), s)
	case c.part == figures:
		return only(s, known && t.told(s, c, d, kept))
	case d.Reason == ratelimit.Limited:
		return only(s, !known && t.fits(s, c) == 0 && d.Granted == 0 && d.At == 0 && t.crosses(s, s, c, d) && t.shows(s, c, d, c.needs(0)))
	case d.Reason == ratelimit.Duplicate:
		return only(s, known && c.part == whole && d.At == 0 && t.crosses(s, s, c, d) && t.told(s, c, d, kept))
	case known:
		later := d.Reason == ratelimit.Delayed && c.part == whole // a repeat gets its own place
		return only(s, (later || c.part == effect) && (d.At == 0 || d.At == kept.at || later) && (!later || t.told(s, c, d, kept)))
	}
	n := d.Granted
	if d.Reason == ratelimit.Delayed {
		n = 1
	}
	after, ok := t.take(s, c, n)
	switch {
	case !ok, n < c.n && !c.partial, n > c.n:
		return nil
	case c.part == effect:
		lost := t.crosses(s, s, c, d) // the lost attempt counted it, so the answer has crossed nothing
		return only(after, (d.At == 0 || d.At == c.now) && (lost || t.crosses(s, after, c, d)))
	case n < t.fits(s, c) && !c.fewer:
		return nil
	}
	return only(after, d.At == c.now && t.crosses(s, after, c, d) && t.told(after, c, d, after.ids[t.name(c)]))
}

// every returns the states after some attempt of c was performed.
func (t tier) every(s *state, c *call, known bool) (states []*state) {
	for n := c.n; n > 0 && !known && (n == c.n || c.partial); n-- {
		if after, ok := t.take(s, c, n); ok {
			states = append(states, after)
		}
	}
	return states
}

// needs returns how many actions the wait of an answer is for.
func (c *call) needs(granted int64) int64 {
	switch {
	case granted == c.n:
		return 0
	case c.partial:
		return 1
	}
	return c.n
}

// told reports whether d is right for a check that is counted in s.
func (t tier) told(s *state, c *call, d *ratelimit.Decision, kept counted) bool {
	if kept.place > c.now {
		return d.Reason == ratelimit.Delayed && t.delays(s, c, d, kept.place)
	}
	if d.Reason == ratelimit.Duplicate {
		return d.Allowed && d.Granted == c.n && t.shows(s, c, d, 0)
	}
	return d.Allowed && d.Reason == ratelimit.OK && d.Granted == kept.n && t.shows(s, c, d, c.needs(kept.n))
}

// delays reports whether d says "come at place", with the figures of s.
func (t tier) delays(s *state, c *call, d *ratelimit.Decision, place int64) bool {
	return !d.Allowed && d.Granted == 0 && d.ReadyAt == place && d.Wait == millis(place-c.now) &&
		d.Waiting == s.account.Waiting(t.numbers, c.now, place) && t.each(s, c, d, 0)
}

// status reports whether d is what a check would be answered in s.
func (t tier) status(s *state, c *call, d *ratelimit.Decision) bool {
	if kept, known := t.known(s, c); known {
		if kept.place <= c.now && d.Reason != ratelimit.Duplicate {
			return false
		}
		return t.told(s, c, d, kept)
	}
	n := t.fits(s, c)
	if n == 0 {
		return !d.Allowed && d.Reason == ratelimit.Limited && t.shows(s, c, d, c.needs(0))
	}
	after, _ := t.take(s, c, n)
	if place := after.ids[t.name(c)].place; place > c.now {
		shown := *d
		shown.Waiting = s.account.Waiting(t.numbers, c.now, place)
		return d.Reason == ratelimit.Delayed && d.Waiting == after.account.Waiting(t.numbers, c.now, place) && t.delays(s, c, &shown, place)
	}
	if n < c.n { // the wait is the one after these n actions
		return d.Granted == n && d.Reason == ratelimit.OK && t.each(s, c, d, 1) && d.Wait == t.longest(after, c, 1)
	}
	return d.Granted == n && d.Reason == ratelimit.OK && t.shows(s, c, d, 0)
}
