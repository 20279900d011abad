package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy/policytest"
)

// Law 1 for giving back: where the guard of an undo holds, a fresh one gives
// back as much. For example, two releases of two actions each are planned while
// two are counted. After the first one, the guard of the second one fails.
func TestLawUndoIsSound(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		w.Now = w.Latest
		n := policytest.Count(t, p)
		if !w.Take(p, n, 1) {
			return
		}
		at := p.Read(w.Now, 0, w.State(p)).At
		planned, ok := p.Undo(w.Now, at, n, w.State(p))
		if !ok {
			return
		}
		other, s := planned, w.State(p)
		if many := policytest.Count(t, p); many != n {
			if other, ok = p.Undo(w.Now, at, many, s); !ok {
				return
			}
		}
		s = other.Apply(s)
		if planned.Holds(s) {
			if _, ok := p.Undo(w.Now, at, n, s); !ok {
				t.Fatalf("%v: an undo of %d holds in %v, where a fresh one gives nothing back: %+v", p, n, s, planned)
			}
		}
	})
}

// Law 2 for giving back: an undo holds in the state in which it was planned, for
// any receipt and any number of actions.
func TestLawUndoIsLive(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		w.Take(p, policytest.Count(t, p), 1)
		at := w.Now - rapid.Int64Range(0, 20).Draw(t, "ago")
		n := policytest.Count(t, p) + rapid.Int64Range(0, 2).Draw(t, "more")
		if u, ok := p.Undo(w.Now, at, n, w.State(p)); ok && !u.Holds(w.State(p)) {
			t.Fatalf("%v: the plan to give back %d in %v does not hold there: %+v", p, n, w.State(p), u)
		}
	})
}
