package histories_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
)

// A system is what one history is about: an item, and the policies that count in
// it. Several policies are the tiers of one activity.
type system []tier

type tier struct {
	policy.Policy

	limits []promise
	names  []string
	top    int64 // the most slots of a log in any tier
}

// newSystem reads the text forms of policies that can share a count.
func newSystem(texts ...string) (sys system) {
	for _, text := range texts {
		t := tier{Policy: policy.Must(text)}
		rates := t.Rates()
		for _, r := range rates {
			promise, ok := promises[r.Kind]
			if !ok {
				panic("the model has no promise of the kind " + r.Kind)
			}
			t.limits = append(t.limits, costs(promise(r, rates[0].Name != ""), r.Cost))
			t.names = append(t.names, r.Name)
		}
		sys = append(sys, t)
	}
	for i := range sys {
		for _, t := range sys {
			if p, _, ok := t.slots(); ok {
				sys[i].top = max(sys[i].top, bare(p).most())
			}
		}
	}
	return sys
}

// mixed reports whether the policies are those of two activities, whose actions cost
// differently.
func (sys system) mixed() bool {
	last := len(sys) - 1
	return !slices.EqualFunc(sys[0].Rates(), sys[last].Rates(), func(a, b policy.Rate) bool { return a.Cost == b.Cost })
}

// window returns the number of the window whose item counts at now; 0: one item
// serves forever.
func (t tier) window(now int64) int64 {
	if f, ok := t.limits[0].(fixed); ok && !f.shared {
		return f.key(now)
	}
	return 0
}

// most returns the most actions that one request can take.
func (t tier) most() int64 {
	most := t.limits[0].most()
	for _, p := range t.limits {
		if _, ok := p.(reservoir); ok {
			return 1
		}
		most = min(most, p.most())
	}
	return most
}

// A state is what the model has counted. Nobody may change it.
type state struct {
	accounts []account        // one for each limit
	ids      map[name]counted // the checks that are remembered
	released map[string]bool  // releases that gave something back, by check and receipt
	latest   int64            // the latest time that was ever counted
	reset    bool             // whether a reset removed the item
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
	return (&state{accounts: make([]account, len(sys[0].limits))}).sealed()
}

// sealed computes the text of a state.
func (s *state) sealed() *state {
	var b strings.Builder
	for _, a := range s.accounts {
		fmt.Fprint(&b, a.counts, a.times, a.full, a.since, ";")
	}
	fmt.Fprint(&b, s.latest, s.reset, s.released)
	for _, n := range slices.SortedFunc(maps.Keys(s.ids), func(a, b name) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		fmt.Fprint(&b, n, s.ids[n])
	}
	s.text = b.String()
	return s
}

// copied returns a copy of s that may be changed and must be sealed.
func (s *state) copied() *state {
	c := &state{slices.Clone(s.accounts), maps.Clone(s.ids), maps.Clone(s.released), s.latest, s.reset, ""}
	if c.ids == nil {
		c.ids = map[name]counted{}
	}
	if c.released == nil {
		c.released = map[string]bool{}
	}
	return c
}

// take counts n actions of c, or returns false if they do not fit.
func (t tier) take(s *state, c *call, n int64) (*state, bool) {
	after := s.copied()
	var place int64
	for i, p := range t.limits {
		a, at, ok := p.take(s.accounts[i], c.now, s.latest, n)
		if !ok {
			return s, false
		}
		after.accounts[i] = a
		place = max(place, at)
	}
	after.latest = max(after.latest, c.now)
	after.ids[t.name(c)] = counted{at: c.now, n: n, place: place, since: c.now}
	return after.sealed(), true
}

// fits returns how many actions of c fit.
func (t tier) fits(s *state, c *call) int64 {
	least := c.n
	if c.partial {
		least = 1
	}
	for n := min(c.n, t.most()); n >= least; n-- {
		if _, ok := t.take(s, c, n); ok {
			return n
		}
	}
	return 0
}

// undo performs a release. If there is nothing to give back, it returns s.
func (t tier) undo(s *state, c *call) *state {
	if kept, ok := s.ids[t.name(c)]; !ok || !kept.has(c.at) {
		return s
	}
	return t.giveBack(s, c)
}

// undone returns the states that can follow a release.
//
// An item does not keep the receipt of a check. So after a reset or a renewal, the old
// receipt of an id that was counted again can give back too. The contract does
// not speak of such a release.
func (t tier) undone(s *state, c *call) []*state {
	if kept, ok := s.ids[t.name(c)]; ok && !kept.has(c.at) && (s.reset || kept.renewed) {
		return []*state{s, t.giveBack(s, c)}
	}
	return []*state{t.undo(s, c)}
}

// giveBack gives back the actions of c, whose id is in s.
func (t tier) giveBack(s *state, c *call) *state {
	receipt := fmt.Sprint(t.name(c), c.at)
	if s.released[receipt] {
		return s
	}
	after, some := s.copied(), false
	kept := s.ids[t.name(c)]
	for i, p := range t.limits {
		if _, slots := bare(p).(log); kept.renewed && !slots {
			continue // the receipt is that of the slots
		}
		at := c.at
		if kept.renewed {
			at = kept.at
		}
		if a, ok := p.undo(s.accounts[i], max(c.now, at), at, c.n); ok {
			after.accounts[i], some = a, true
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
func (t tier) reset(s *state, c *call) *state {
	window := t.window(c.now)
	if window == 0 {
		return (&state{accounts: make([]account, len(s.accounts)), latest: s.latest, reset: true}).sealed()
	}
	after := s.copied()
	after.reset = true
	after.accounts[0] = s.accounts[0].count(window, -s.accounts[0].counts[window])
	maps.DeleteFunc(after.ids, func(n name, _ counted) bool { return n.window == window })
	maps.DeleteFunc(after.released, func(receipt string, _ bool) bool {
		return strings.Contains(receipt, fmt.Sprint(" ", window, "}"))
	})
	return after.sealed()
}

func (t tier) name(c *call) name { return name{c.id, t.window(c.now)} }
