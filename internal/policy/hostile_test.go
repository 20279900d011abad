package policy_test

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
)

// Someone else may have written anything into an item. No method may panic on
// it or run without end, and no caller is told a negative number of actions or
// a negative wait.
func TestAnyStateIsReadWithoutPanic(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		n := policytest.Count(t, p)
		at := w.Now - rapid.SampledFrom([]int64{0, 1, 1000, math.MaxInt64 / 2}).Draw(t, "ago")
		s := hostile(t, w, p)
		decide := func() (took time.Duration) {
			began := time.Now()
			if u, ok := p.Take(w.Now, n, 1, s); ok {
				u.Apply(s)
			}
			undo := func(now, at, n int64, s State) (Update, bool) { return p.Undo(now, at, at, n, s) }
			for _, plan := range []func(now, at, n int64, s State) (Update, bool){undo, p.Free, p.Renew} {
				if u, ok := plan(w.Now, at, n, s); ok {
					u.Apply(s)
				}
			}
			p.Cross(w.Now, n, s, p.Read(w.Now, 0, s))
			for _, r := range append(p.Read(w.Now, n, s).Each, p.Read(w.Now, n, s), p.Read(w.Now, 0, s)) {
				if r.Remaining < 0 || r.Remaining > r.Limit || r.Wait < 0 || r.ResetAt < w.Now {
					t.Fatalf("%v reads %v as %+v, want 0 to %d remaining, no negative wait and no reset in the past", p, s, r, r.Limit)
				}
			}
			p.Waiting(w.Now, at, s)
			p.Due(w.Now, at)
			return time.Since(began)
		}
		took := decide()
		for tries := 1; took > time.Second && tries < 3; tries++ { // a busy machine can stand still for a second
			took = decide()
		}
		if took > time.Second {
			t.Fatalf("%v takes %v for %v", p, took, s)
		}
	})
}

// hostile returns a state of p. Some of its attributes hold what p never
// writes.
func hostile(t *rapid.T, w *policytest.World, p Policy) State {
	var spoil Update
	names := map[string]bool{}
	for _, count := range []int64{1, p.Max()} {
		u, _ := p.Take(w.Now, count, 1, nil)
		for name := range u.Attributes {
			names[name] = true
		}
	}
	window := p.Rates()[0].Window.Milliseconds()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if rapid.Bool().Draw(t, "spoiled") {
			value := rapid.OneOf(
				rapid.SampledFrom([]int64{
					math.MinInt64, math.MinInt64 + 1, math.MinInt64 / 1_000_000, -1, 0, 1, 101, w.Now, w.Now + window,
					w.Now / window * 1_000_000, math.MaxInt64 / 1_000_000, math.MaxInt64 - 1, math.MaxInt64,
				}),
				rapid.Int64(),
			).Draw(t, name)
			spoil.Acts = append(spoil.Acts, Act{Set, name, value})
		}
	}
	return spoil.Apply(w.State(p))
}
