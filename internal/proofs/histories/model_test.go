package histories_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
)

// A system is what one history is about: an item, and the policies that count in
// it. Several policies are the tiers of one activity.
type system []tier

type tier struct {
	policy.Policy

	numbers *oracle.Terms
	limits  []*oracle.Terms // each limit by itself
	top     int64           // the most slots of a log in any tier

	cheapest map[string]int64 // the lowest cost of each limit in any tier
}

// newSystem reads the text forms of policies that can share a count. Behind "with", a text has
// the number that the callers of its tier give for each limit with a max.
func newSystem(texts ...string) (sys system) {
	top, cheapest := int64(0), map[string]int64{}
	all, numbers := make([]policy.Policy, len(texts)), make([]int64, len(texts))
	for i, text := range texts {
		text, number, _ := strings.Cut(text, " with ")
		all[i] = policy.Must(text)
		numbers[i], _ = strconv.ParseInt(number, 10, 64)
	}
	for i, p := range all {
		p = p.Beside(all...)
		rates := p.Rates()
		if n := numbers[i]; n > 0 {
			p = p.With(func(string) (int64, bool) { return n, true })
			for j, r := range rates {
				if r.Max > 0 {
					rates[j], _ = oracle.Numbered(r, n)
				}
			}
		}
		t := tier{Policy: p, numbers: oracle.NewTerms(rates)}
		for _, r := range rates {
			t.limits = append(t.limits, oracle.NewTerms([]policy.Rate{r}))
			cheapest[r.Name] = min(oracle.Cost(r), cmp.Or(cheapest[r.Name], oracle.Cost(r)))
			if r.Kind == "log" {
				top = max(top, r.Limit)
			}
		}
		sys = append(sys, t)
	}
	for i := range sys {
		sys[i].top, sys[i].cheapest = top, cheapest
	}
	return sys
}

// mixed reports whether the policies belong to two activities whose actions have
// different costs.
func (sys system) mixed() bool {
	last := len(sys) - 1
	return !slices.EqualFunc(sys[0].Rates(), sys[last].Rates(), func(a, b policy.Rate) bool { return a.Cost == b.Cost })
}

// restarts reports whether the check other can begin a series of a lockout while the one before
// still counts for the check c. Then c finds room. By docs/policies.md, a series "ends 15
// minutes later, or with the lock". So it can end sooner for a tier with another limit.
func (sys system) restarts(c, other *call) bool {
	return sys[0].HasLockout() && c.tier != other.tier
}

// window returns the number of the window whose item counts at now; 0: one item
// serves forever.
func (t tier) window(now int64) int64 {
	if r := t.numbers.Rates[0]; r.Kind == "fixed" && r.Name == "" {
		return oracle.WindowsOf(r).Key(now)
	}
	return 0
}

// A state is what the model has counted. Nobody may change it.
type state struct {
	account  *oracle.Account
	ids      map[name]counted // the checks that are remembered
	released map[string]bool  // releases that gave something back, by check and receipt
	reset    bool             // whether a reset removed the item
	moved    bool             // whether slots were renewed
	text     string           // equal for equal states
}

// A name is the id of a check, and the item that remembers it.
type name struct {
	id     string
	window int64
}

// counted is a check that was counted. At is its receipt, and since is the first one.
type counted struct {
	at, n, place, since int64
	renewed             bool
}

// has reports whether at is a receipt of k. Receipts are given only while it counts.
func (k counted) has(at int64) bool { return k.since <= at && at <= k.at }

func (sys system) empty() *state {
	return (&state{account: oracle.NewAccount([]*oracle.Terms{sys[0].numbers})}).sealed()
}

// sealed computes the text of a state.
func (s *state) sealed() *state {
	s.text = fmt.Sprint(s.account.Models, s.reset, s.moved, s.released, s.ids)
	return s
}

// copied returns a copy of s that may be changed and must be sealed.
func (s *state) copied() *state {
	c := &state{s.account.Clone(), maps.Clone(s.ids), maps.Clone(s.released), s.reset, s.moved, ""}
	if c.ids == nil {
		c.ids, c.released = map[name]counted{}, map[string]bool{}
	}
	return c
}

// known returns what c was counted as, and false if it was not counted. It also returns
// false if the window of its place is over: then c is a late job, which takes a new place.
func (t tier) known(s *state, c *call) (kept counted, ok bool) {
	kept, ok = s.ids[t.name(c)]
	for _, r := range t.numbers.Rates {
		window := r.Window.Milliseconds()
		ok = ok && (r.Kind != "reservoir" || c.now/window <= kept.place/window)
	}
	return kept, ok
}

// room reports whether n actions fit at now. A late attempt finds none if the item has
// begun something later meanwhile.
func (t tier) room(s *state, now, n int64) bool {
	return s.account.At(t.numbers, now) == now && s.account.Fits(t.numbers, now, n, false)
}

// take counts n actions of c, or returns false if they do not fit.
func (t tier) take(s *state, c *call, n int64) (*state, bool) {
	if !t.room(s, c.now, n) {
		return s, false
	}
	after := s.copied()
	place := after.account.Place(t.numbers, c.now)
	if err := after.account.Count(t.numbers, c.now, n); err != nil {
		return s, false
	}
	after.ids[t.name(c)] = counted{at: c.now, n: n, place: place, since: c.now}
	return after.sealed(), true
}

// fits returns how many actions of c fit.
func (t tier) fits(s *state, c *call) int64 {
	least := c.n
	if c.partial {
		least = 1
	}
	for n := min(c.n, t.numbers.Most); n >= least; n-- {
		if t.room(s, c.now, n) {
			return n
		}
	}
	return 0
}

// undone returns the states that can follow a release.
//
// An item does not keep the receipt of a check. So after a reset or a renewal, the old
// receipt of an id that was counted again can give back too. The contract does
// not speak of such a release.
func (t tier) undone(s *state, c *call) []*state {
	clears := c.clear && !s.released[clearOf(t.receipt(c))]
	states := t.givenBack(s, c)
	if c.raced && t.HasLockout() {
		states = append(states, t.overtaken(s, c, clears)...)
	}
	if clears {
		for i, after := range states {
			states[i] = t.cleared(after, c)
		}
	}
	return states
}

// overtaken returns more states that can follow a release. They are for a series of a lockout that
// ends or begins between the release's look at the item and its write. By docs/events.md, attempts
// under way "give nothing back in a series that begins later, except in its first millisecond".
// The time of such an attempt does not tell its series. So the lockout may keep it, while other
// limits give it back.
//
// With clear, the write ends any series, even if nothing is given back. Whether the id is free then
// depends on the look. The contract leaves that open: docs/events.md frees "the released id", and a
// release that is too late "changes nothing". After a reset, a late copy of a check "takes effect
// as if new". If it arrives after the look, nothing of it is given back.
func (t tier) overtaken(s *state, c *call, clears bool) (states []*state) {
	kept, ok := s.ids[t.name(c)]
	if !ok || s.released[t.receipt(c)] || !kept.has(c.at) && !s.reset && !s.moved {
		return nil
	}
	others := t.giveBack(s, c, false)
	if others != s {
		states = append(states, others)
	}
	if clears && (others == s || s.reset) {
		states = append(states, s)
	}
	if clears && others == s {
		free := s.copied()
		delete(free.ids, t.name(c))
		states = append(states, free.sealed())
	}
	return states
}

// clearOf names a release with clear. One without clear is no copy of it.
func clearOf(receipt string) string { return receipt + " clear" }

// cleared returns s after a release with clear, which keeps its id even if it gave nothing back.
func (t tier) cleared(s *state, c *call) *state {
	after := s.copied()
	after.account.Unlock(t.numbers)
	after.released[t.receipt(c)], after.released[clearOf(t.receipt(c))] = true, true
	return after.sealed()
}

// receipt names a release in an item.
func (t tier) receipt(c *call) string { return fmt.Sprint(t.name(c), c.at) }

func (t tier) givenBack(s *state, c *call) []*state {
	switch kept, ok := s.ids[t.name(c)]; {
	case ok && kept.has(c.at):
		return []*state{t.giveBack(s, c, true)}
	case ok && (s.reset || s.moved):
		return []*state{s, t.giveBack(s, c, true)}
	}
	return []*state{s}
}

// promised is how long after a check, in milliseconds, a release gives back in each limit.
const promised = 20_000

// giveBack gives back the actions of c, whose id is in s, in lockouts only if locks is set.
// It returns s itself if nothing is given back. After a renewal, a release within
// 20 s after the check frees every limit, and a later one the slots of the log.
func (t tier) giveBack(s *state, c *call, locks bool) *state {
	receipt := t.receipt(c)
	if s.released[receipt] {
		return s
	}
	after, some := s.copied(), false
	kept := s.ids[t.name(c)]
	at := c.at
	if kept.renewed {
		at = kept.at
	}
	for m, r := range after.account.Own(t.numbers) {
		if r.Kind == "lockout" && !locks {
			continue
		}
		now, at, n := max(c.now, at), at, c.n*oracle.Cost(r)
		if kept.renewed && r.Kind != "log" { // the other limits know the check by its own time
			if at = kept.since; now-at > promised {
				continue
			}
		}
		if m.Holds(now, at, n, true) {
			m.Back(now, at, n)
			some = true
		}
	}
	if !some {
		return s
	}
	delete(after.ids, t.name(c))
	after.released[receipt] = true
	return after.sealed()
}

// reset removes the item that counts at c.now.
func (sys system) reset(s *state, c *call) *state {
	window := sys[c.tier].window(c.now)
	after := s.copied()
	after.reset = true
	if window == 0 {
		after.account = sys.empty().account
	} else {
		after.account.Clear(window)
	}
	maps.DeleteFunc(after.ids, func(n name, _ counted) bool { return n.window == window })
	maps.DeleteFunc(after.released, func(receipt string, _ bool) bool {
		return strings.Contains(receipt, fmt.Sprint(" ", window, "}"))
	})
	return after.sealed()
}

func (t tier) name(c *call) name { return name{c.id, t.window(c.now)} }
