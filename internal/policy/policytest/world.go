// Package policytest draws the states that policies can reach, for property
// tests. Every kind of policy takes part without being named here.
package policytest

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

// Each property is tried in 20 worlds, or in 100 if long bounds apply. The flag -rapid.checks still decides.
func init() {
	if err := flag.Set("rapid.checks", testkit.Bound("20", "100")); err != nil {
		panic(err)
	}
}

// A World holds the items of one user and one activity at a moment. Several
// policies can share them, as tiers and live limits do.
type World struct {
	Policies []policy.Policy
	Now      int64 // Unix milliseconds
	Latest   int64 // the latest Now so far; clocks can step back
	Items    map[int64]policy.State
	Expires  map[int64]int64 // of each item, in Unix seconds
}

// Run runs check as a property of many worlds, in one subtest for each set of
// policies. The sets are:
//   - each example of each kind alone
//   - the examples of a kind that can share a count
//   - several limits, of every pair of kinds and of as many kinds as can stand beside each other
//   - prepaid buckets beside an ordinary one
//   - the activities of a group
func Run(t *testing.T, check func(*rapid.T, *World)) {
	for _, texts := range append(Sets(), Groups()...) {
		policies := make([]policy.Policy, len(texts))
		for i, text := range texts {
			policies[i] = policy.Must(text)
		}
		if policies[0].Named() {
			for i, p := range policies {
				policies[i] = p.Beside(policies...)
			}
		}
		t.Run(strings.Join(texts, "; "), rapid.MakeCheck(func(r *rapid.T) { check(r, Reach(r, policies...)) }))
	}
}

// Sets returns sets of text forms. The policies of one set can share a count.
func Sets() (sets [][]string) {
	for i, k := range policy.Kinds() {
		for _, text := range k.Examples {
			sets = append(sets, []string{text})
		}
		sets = append(sets, sharing(k)...)
		for _, other := range policy.Kinds()[i:] {
			sets = append(sets, pair(k, other)...)
		}
	}
	for _, prefix := range []string{"", "b: 20000/1h, a: "} {
		ordinary := prefix + "bucket 150/450ms burst 160"
		prepaid := strings.ReplaceAll(ordinary, ",", " prepaid,") + " prepaid"
		sets = append(sets, []string{prepaid, ordinary, strings.ReplaceAll(prepaid, "160", "500")})
	}
	sets = append(sets, []string{"a: 3/26ms max 9, b: 7/26ms", "b: 9/26ms, a: 5/26ms max 8"})
	sets = append(sets, []string{"a: 3/26ms max 9 cost 2, b: log 3/26ms max 9, c: sliding 3/26ms max 9, d: bucket 1/99ms burst 3 max 11"})
	for _, text := range Together(func(k policy.Kind) string { return small(k)[0] }) {
		sets = append(sets, []string{text})
	}
	return sets
}

// Groups returns sets of text forms, each of the activities of a group. The activities
// share a limit w, and each kind is the limit of one activity alone and the limit that
// two activities share.
func Groups() (sets [][]string) {
	for _, k := range policy.Kinds() {
		for _, other := range policy.Kinds() {
			set := []string{"a: " + small(k)[0] + ", w: 9/26ms cost 2", "b: " + small(other)[0] + ", w: 9/26ms", "w: 6/26ms"}
			if can(set...) {
				sets = append(sets, set)
			}
		}
		text := small(k)[len(small(k))-1]
		sets = append(sets, []string{"x: " + text, "a: sliding 3/9ms, x: " + text})
	}
	return append(sets, []string{"a: 3/2s", "b: log 3/1h"}, []string{"a: 3/2s, w: 9/3s cost 2", "w: 9/3s, b: bucket 3/1h"})
}

// can reports whether a set has only text forms that a policy can have.
func can(set ...string) bool {
	return !slices.ContainsFunc(set, func(text string) bool { _, err := policy.Parse(text); return err != nil })
}

// sharing groups the examples of a kind that can share a count.
func sharing(k policy.Kind) (sets [][]string) {
	for i, text := range k.Examples {
		set := []string{text}
		for _, other := range k.Examples[i+1:] {
			if policy.CompatibleTiers(policy.Must(text), policy.Must(other)) == nil {
				set = append(set, other)
			}
		}
		if len(set) > 1 {
			sets = append(sets, set)
		}
	}
	return sets
}

// pair combines two kinds in one policy, once with other limits and the other
// order as a second tier.
func pair(a, b policy.Kind) [][]string {
	x, y := small(a), small(b)
	if b.Name == "lockout" { // the last of the kinds; its times are seconds
		x = inSeconds(x)
	}
	sets := [][]string{{fmt.Sprintf("a: %s, b: %s", x[0], y[0])}}
	if !can(sets[0]...) { // a policy can have only one limit of this kind, or one of these
		return nil
	}
	other := fmt.Sprintf("b: %s, a: %s", y[len(y)-1], x[len(x)-1])
	if policy.CompatibleTiers(policy.Must(sets[0][0]), policy.Must(other)) == nil {
		sets = append(sets, []string{sets[0][0], other})
	}
	return sets
}

// Together returns text forms that combine a limit of each kind, written by text. A lockout and
// a reservoir can't stand beside each other, so one form leaves out the one, and one the other.
func Together(text func(policy.Kind) string) (all []string) {
	for _, without := range []string{"lockout", "reservoir"} {
		var limits []string
		for i, k := range policy.Kinds() {
			if k.Name != without {
				limits = append(limits, string(rune('a'+i))+": "+text(k))
			}
		}
		all = append(all, strings.Join(limits, ", "))
	}
	return all
}

// small returns the examples whose windows a few steps can cross.
func small(k policy.Kind) (texts []string) {
	unit := time.Millisecond
	if k.Name == "lockout" {
		unit = time.Second
	}
	for _, text := range k.Examples {
		if w := policy.Must(text).Rates()[0].Window; unit < w && w <= 10*unit {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		texts = k.Examples[:1]
	}
	return texts
}

// inSeconds returns the texts with seconds instead of milliseconds.
func inSeconds(texts []string) (longer []string) {
	for _, text := range texts {
		longer = append(longer, strings.ReplaceAll(text, "ms", "s"))
	}
	return longer
}

// Reach draws a world that the policies can come to: actions counted at moments
// that go forward and sometimes a little back.
func Reach(t *rapid.T, policies ...policy.Policy) *World {
	window := policies[0].Rates()[0].Window.Milliseconds()
	w := &World{
		Policies: policies, Items: map[int64]policy.State{}, Expires: map[int64]int64{},
		Now: 1_700_000_000_000 + rapid.Int64Range(0, 3*window).Draw(t, "start"),
	}
	w.Latest = w.Now
	for range rapid.IntRange(0, 8).Draw(t, "steps") {
		w.Now += rapid.Int64Range(-window/10, window*2/3).Draw(t, "pause")
		w.Latest = max(w.Latest, w.Now)
		p := w.Any(t)
		w.Take(p, Count(t, p), uint64(w.Now))
	}
	return w
}

// Any draws one of the world's policies, and the numbers of a caller for its limits with a max.
func (w *World) Any(t *rapid.T) policy.Policy {
	p := rapid.SampledFrom(w.Policies).Draw(t, "policy")
	numbers := map[string]int64{}
	for _, r := range p.Rates() {
		if r.Max > 0 && rapid.Bool().Draw(t, "gives") {
			numbers[r.Name] = rapid.Int64Range(0, r.Max+1).Draw(t, "number")
		}
	}
	if len(numbers) == 0 {
		return p
	}
	return p.With(func(limit string) (int64, bool) { n, ok := numbers[limit]; return n, ok })
}

// Count draws a number of actions that p accepts in one request. Large numbers
// are rare.
func Count(t *rapid.T, p policy.Policy) int64 {
	most := p.Max()
	if rapid.IntRange(0, 3).Draw(t, "few") > 0 {
		most = min(most, 4)
	}
	return rapid.Int64Range(1, most).Draw(t, "n")
}

// State returns the item that p counts in now.
func (w *World) State(p policy.Policy) policy.State {
	window, _ := p.Item(w.Now)
	return w.Items[window]
}

// Take plans n actions and, if they fit, counts them. If not, it records the pace of p. It
// reports whether they fit.
func (w *World) Take(p policy.Policy, n int64, seed uint64) bool {
	window, expires := p.Item(w.Now)
	u, ok := p.Take(w.Now, n, seed, w.State(p))
	records := false
	if !ok {
		u, expires, records = p.Repace(w.Now, w.State(p))
	}
	if ok || records {
		w.Items[window], w.Expires[window] = u.Apply(w.State(p)), expires
	}
	return ok
}

// Later returns a copy of w after some more actions were counted at the same
// moment, by policies that make may return true.
func (w *World) Later(t *rapid.T, may func(policy.Policy) bool) *World {
	l := &World{Policies: w.Policies, Now: w.Now, Latest: w.Latest, Items: maps.Clone(w.Items), Expires: maps.Clone(w.Expires)}
	for i := range rapid.IntRange(0, 5).Draw(t, "meanwhile") {
		if p := l.Any(t); may(p) {
			l.Take(p, Count(t, p), uint64(i))
		}
	}
	return l
}
