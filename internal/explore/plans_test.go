package explore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A subject is a policy to explore, with the live limits that replace it.
type subject struct {
	kinds   string // of its limits
	text    string
	prefill int64  // so that two actions more fit
	lowered string // another limit of the same window
	raised  string
}

const two = 2 // the limit of most subjects

// subjects returns each kind with a limit of two, each kind with the highest
// limit that it takes of which two are left, and each pair of kinds. They come
// from the list of kinds, so a new kind takes part.
func subjects(t *testing.T) (single, large, several []subject) {
	t.Helper()
	for _, k := range policy.Kinds() {
		s := subject{kinds: k.Name, text: text(k, two, 10), lowered: text(k, 1, 10), raised: text(k, 4, 10)}
		if _, err := policy.Parse(s.text); err != nil {
			t.Fatalf("the kind %s needs a text with a limit of two: %v", k.Name, err)
		}
		single = append(single, s)
		for _, limit := range []int64{125, 100} {
			s := subject{kinds: k.Name, text: text(k, limit, 10), prefill: limit - two}
			if _, err := policy.Parse(s.text); err == nil {
				large = append(large, s)
				break
			}
		}
	}
	for i, k := range policy.Kinds() {
		for _, other := range policy.Kinds()[i:] {
			pair := func(n int64) string { return "a: " + text(k, n, 10) + ", b: " + text(other, n, 20) }
			s := subject{kinds: k.Name + " and " + other.Name, text: pair(two), lowered: pair(1), raised: pair(4)}
			if _, err := policy.Parse(s.text); err == nil { // a policy can have only one limit of some kinds
				several = append(several, s)
			}
		}
	}
	return single, large, several
}

// text returns a limit of a kind in so many seconds.
func text(k policy.Kind, limit int64, seconds int) string {
	s := fmt.Sprintf("%s %d/%ds", k.Name, limit, seconds)
	for _, example := range k.Examples {
		if policy.Must(example).Queues() && policy.Must(example).Rates()[0].Ahead > 0 {
			return s + " ahead 20s"
		}
	}
	return s
}

// A scenario is what callers ask for. All requests can come in any order that
// makes sense, and at the same time.
type scenario struct {
	requests []request
	prefill  int64 // for a policy that gives places
}

var (
	one      = request{verb: check, count: 1}
	both     = request{verb: check, count: two}
	some     = request{verb: partial, count: two}
	again    = request{verb: repeat, of: 0}
	undo     = request{verb: release, of: 0, count: 1}
	undoBoth = request{verb: release, of: 0, count: two}
	show     = request{verb: present, of: 0}
	clear    = request{verb: reset}
	look0    = request{verb: status}
)

// core are the scenarios that the widest bounds take.
var core = []scenario{
	{requests: []request{one, one, one}},
	{requests: []request{one, again, one}},
	{requests: []request{one, undo, again}},
	{requests: []request{one, undo, undo}},
	{requests: []request{some, one, one}},
	{requests: []request{some, undoBoth, some}},
	{requests: []request{one, clear, again}},
}

// rest are the other scenarios.
var rest = []scenario{
	{requests: []request{both, one, one}},
	{requests: []request{both, again, one}},
	{requests: []request{both, undo, one}},
	{requests: []request{both, undoBoth, some}},
	{requests: []request{some, both, one}},
	{requests: []request{some, some, one}},
	{requests: []request{one, again, again}},
	{requests: []request{one, undo, one}},
	{requests: []request{one, clear, one}},
	{requests: []request{some, clear, one}},
	{requests: []request{one, one, look0}},
}

// places are the scenarios of a policy that gives places.
var places = []scenario{
	{[]request{one, one, one}, 1},
	{[]request{one, again, one}, 1},
	{[]request{one, again, one}, two},
	{[]request{one, show, one}, two},
	{[]request{one, show, show}, two},
}

// border are the instants around the end of a window, of a period and of a
// generation of ids.
var border = []int64{-1, 0}

// A plan is a part of the exploration with bounds of its own.
type plan struct {
	name      string
	subjects  []subject
	scenarios []scenario
	instants  []int64
	skews     []time.Duration
	set       func(*system) // the other bounds
	live      bool          // the limit is lowered and raised
}

// systems returns the systems of a plan.
func (p plan) systems() (all []*system) {
	for _, s := range p.subjects {
		policies := []policy.Policy{policy.Must(s.text)}
		if p.live {
			policies = append(policies, policy.Must(s.lowered), policy.Must(s.raised))
		}
		scenarios := p.scenarios
		if policies[0].Queues() {
			scenarios = places[:min(len(places), len(p.scenarios))]
		}
		for _, c := range scenarios {
			if p.live && slices.ContainsFunc(c.requests, func(r request) bool { return r.verb == check && r.count > 1 }) {
				continue // it is above the lowered limit
			}
			for _, skew := range p.skews {
				y := &system{policies: policies, prefill: s.prefill + c.prefill, skew: skew, instants: p.instants, requests: c.requests, attempts: 3}
				if s.prefill > 0 && policies[0].Queues() {
					y.prefill -= two - c.prefill
					y.prefill = s.prefill + c.prefill
				}
				if p.set != nil {
					p.set(y)
				}
				all = append(all, y)
			}
		}
	}
	return all
}
