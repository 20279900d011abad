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

// law runs check as a property of many worlds, with a policy and a number of actions for each.
func law(t *testing.T, check func(t *rapid.T, w *policytest.World, p Policy, n int64)) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		check(t, w, p, policytest.Count(t, p))
	})
}

func anyPolicy(Policy) bool { return true }

// notFaster returns a filter for policies whose actions come back no sooner
// than p's actions. A shorter window is allowed to let actions expire, and a
// lower limit or a shorter lock to end a lock.
func notFaster(p Policy) func(Policy) bool {
	return func(other Policy) bool {
		for _, r := range p.Rates() {
			for _, o := range other.Rates() {
				if r.Name == o.Name && (interval(o) < interval(r) || o.Limit < r.Limit && o.Lock != 0 || o.Lock < r.Lock || o.MaxLock < r.MaxLock) {
					return false
				}
			}
		}
		return true
	}
}

func interval(r Rate) time.Duration {
	if r.Burst == 0 {
		return r.Window
	}
	return time.Duration((r.Window.Milliseconds()+r.Limit-1)/r.Limit) * time.Millisecond
}

func TestLawAnEmptyItemTakesEveryCountUpToTheMost(t *testing.T) {
	law(t, func(t *rapid.T, w *policytest.World, p Policy, n int64) {
		if u, ok := p.Take(w.Now, n, 7, nil); !ok || !u.Holds(nil) {
			t.Fatalf("Take(%d) in an empty item = %v, %v, want an update that holds", n, u, ok)
		}
		if _, ok := p.Take(w.Now, p.Max()+1, 7, nil); ok {
			t.Fatalf("%d actions are taken at once, want at most %d", p.Max()+1, p.Max())
		}
	})
}

// Law 1: take an update planned in any state, and any state that its guard
// holds in. There, the update is legal, and decides as a fresh one would.
func TestLawSound(t *testing.T) {
	law(t, func(t *rapid.T, w *policytest.World, p Policy, n int64) {
		planned := w.State(p)
		if rapid.Bool().Draw(t, "cold") {
			planned = nil
		}
		u, ok := p.Take(w.Now, n, 1, planned)
		if !ok {
			return
		}
		now := w.Later(t, anyPolicy)
		s := now.State(p)
		if !u.Holds(s) {
			return
		}
		fresh, allowed := p.Take(now.Now, n, 2, s)
		if !allowed {
			t.Fatalf("%v: an update planned in %v holds in %v, where %d do not fit: %+v", p, planned, s, n, u)
		}
		if u.ReadyAt != fresh.ReadyAt {
			t.Fatalf("%v: planned in %v, the place in %v is %d, want %d", p, planned, s, u.ReadyAt, fresh.ReadyAt)
		}
		for _, q := range w.Policies {
			got, want := q.Read(w.Now, 0, u.Apply(s)), q.Read(w.Now, 0, fresh.Apply(s))
			if !sameFigures(got, want) {
				t.Fatalf("%v: after the old plan %v reads %+v, after a fresh one %+v", p, q, got, want)
			}
		}
		before, after := p.Read(w.Now, 0, s), p.Read(w.Now, 0, u.Apply(s))
		if !p.Queues() && after.Remaining != before.Remaining-n {
			t.Fatalf("%v: %d remain, %d are taken, and then %d remain", p, before.Remaining, n, after.Remaining)
		}
	})
}

func sameFigures(a, b Reading) bool {
	return a.Name == b.Name && a.Used == b.Used && a.Remaining == b.Remaining && a.ResetAt == b.ResetAt
}

// Law 2: an update holds in the state that it was planned from. Otherwise the
// limiter's loop would not end.
func TestLawLive(t *testing.T) {
	law(t, func(t *rapid.T, w *policytest.World, p Policy, n int64) {
		if u, ok := p.Take(w.Now, n, 1, w.State(p)); ok && !u.Holds(w.State(p)) {
			t.Fatalf("%v: the plan for %d in %v does not hold there: %+v", p, n, w.State(p), u)
		}
	})
}

// Law 3: what a state refuses, later states of the same moment refuse too.
func TestLawMonotone(t *testing.T) {
	law(t, func(t *rapid.T, w *policytest.World, p Policy, n int64) {
		if _, ok := p.Take(w.Now, n, 1, w.State(p)); ok {
			return
		}
		now := w.Later(t, notFaster(p))
		if _, ok := p.Take(w.Now, n, 1, now.State(p)); ok {
			t.Fatalf("%v: %d are refused in %v and taken later in %v", p, n, w.State(p), now.State(p))
		}
	})
}

// Law 4: dropping an expired item changes no decision, even on a clock that is
// 120 s behind. A tier whose locks are longer than the last writer's is left out: its
// lock can end with the item.
func TestLawExpiry(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		w.Now = w.Latest
		p := w.Any(t)
		if !w.Take(p, 1, 3) { // the last writer sets when the item expires
			return
		}
		window, expires := p.Item(w.Now)
		s := w.State(p)
		at := expires*1000 - 120_000 + rapid.Int64Range(0, 3*p.Rates()[0].Window.Milliseconds()).Draw(t, "after")
		if now, _ := p.Item(at); now != window {
			s = nil // counted elsewhere by now
		}
		for _, q := range w.Policies {
			if longerLocks(q, p) {
				continue
			}
			if got, want := q.Read(at, 0, s), q.Read(at, 0, nil); got.Used != want.Used || got.Remaining != want.Remaining {
				t.Fatalf("%v: %v reads as %+v when it expires, an empty item as %+v", q, s, got, want)
			}
		}
	})
}

// longerLocks reports whether a lockout of q can lock for longer than p's.
func longerLocks(q, p Policy) bool {
	for _, r := range q.Rates() {
		for _, o := range p.Rates() {
			if r.Name == o.Name && r.MaxLock > o.MaxLock {
				return true
			}
		}
	}
	return false
}

// Law 5: after Wait the caller is admitted, and one millisecond earlier
// refused.
func TestLawWaitIsKept(t *testing.T) {
	law(t, func(t *rapid.T, w *policytest.World, p Policy, n int64) {
		w.Now = w.Latest // nothing is counted in times to come
		wait := p.Read(w.Now, n, w.State(p)).Wait
		before := w.State(p)
		fits := w.Take(p, n, 1)
		if fits != (wait == 0) {
			t.Fatalf("%v: %d fit in %v: %v, and Wait is %v", p, n, before, fits, wait)
		}
		if fits {
			return
		}
		early, late := w.Later(t, func(Policy) bool { return false }), w.Later(t, func(Policy) bool { return false })
		early.Now += wait.Milliseconds() - 1
		late.Now += wait.Milliseconds()
		if early.Take(p, n, 1) {
			t.Errorf("%v: %d in %v, told to wait %v, are admitted a millisecond early", p, n, before, wait)
		}
		if !late.Take(p, n, 1) {
			t.Errorf("%v: %d in %v, told to wait %v, are refused then", p, n, before, wait)
		}
	})
}

func TestLawRemainingIsTheMostThatFits(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		if p.Queues() {
			return
		}
		remaining := p.Read(w.Now, 0, w.State(p)).Remaining
		if remaining < 0 {
			t.Fatalf("%v: %d remain", p, remaining)
		}
		for _, n := range []int64{1, remaining - 1, remaining, remaining + 1} {
			if _, ok := p.Take(w.Now, n, 1, w.State(p)); n > 0 && ok != (n <= min(remaining, p.Max())) {
				t.Fatalf("%v: %d remain in %v, and %d are taken: %v", p, remaining, w.State(p), n, ok)
			}
		}
	})
}

// Undo takes back exactly what Take just counted, and never more than is there.
func TestLawUndo(t *testing.T) {
	law(t, func(t *rapid.T, w *policytest.World, p Policy, n int64) {
		w.Now = w.Latest
		before := p.Read(w.Now, 0, w.State(p))
		if p.Queues() || !w.Take(p, n, 1) {
			return
		}
		at := p.CountedAt(w.Now, w.State(p))
		u, ok := p.Undo(w.Now, w.Now, at, n, w.State(p))
		if !ok || !u.Holds(w.State(p)) {
			t.Fatalf("%v: %d were just counted in %v and can't be given back: %+v", p, n, w.State(p), u)
		}
		if after := p.Read(w.Now, 0, u.Apply(w.State(p))); after.Remaining != before.Remaining {
			t.Fatalf("%v: %+v before, and after a take and an undo of %d %+v", p, before, n, after)
		}
		for _, many := range []int64{p.Max() + 1, 1_000_000, 1_000_001} {
			if u, ok := p.Undo(w.Now, w.Now, at, many, w.State(p)); ok {
				if after := p.Read(w.Now, 0, u.Apply(w.State(p))); after.Used < 0 || after.Remaining > after.Limit {
					t.Fatalf("%v: %d given back in %v: %+v", p, many, w.State(p), after)
				}
			}
		}
	})
}

func TestLawTextForm(t *testing.T) {
	for _, set := range policytest.Sets() {
		for _, text := range set {
			p, err := Parse(text)
			if err != nil || p.String() != text {
				t.Errorf("Parse(%q) = %q, %v", text, p, err)
			}
		}
	}
}

// An item expires no sooner because a clock that is 2 s behind has written last.
// A window of an hour is longer than the slack of 120 s.
func TestLawExpiryOnClocksThatDiffer(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		window := p.Rates()[0].Window.Milliseconds()
		end := (w.Latest/window + 1) * window
		ahead, behind := *w, *w
		ahead.Now = end + rapid.Int64Range(0, 1000).Draw(t, "ahead")
		behind.Now = ahead.Now - rapid.Int64Range(0, 2000).Draw(t, "behind")
		n, _ := p.Item(ahead.Now)
		if !ahead.Take(p, 1, 1) || !behind.Take(p, 1, 2) || w.Items[n] == nil {
			return
		}
		if got := p.Read(ahead.Now, 0, w.Items[n]); got.ResetAt > w.Expires[n]*1000 {
			t.Fatalf("%v: the item expires at %d and counts until %d", p, w.Expires[n]*1000, got.ResetAt)
		}
	})
}

// Law 1 for giving back: where the guard of an undo holds, a fresh one gives
// back as much. For example, two releases of two actions each are planned while
// two are counted. After the first one, the guard of the second one fails.
func TestLawUndoIsSound(t *testing.T) {
	law(t, func(t *rapid.T, w *policytest.World, p Policy, n int64) {
		w.Now = w.Latest
		if !w.Take(p, n, 1) {
			return
		}
		at := p.CountedAt(w.Now, w.State(p))
		planned, ok := p.Undo(w.Now, w.Now, at, n, w.State(p))
		if !ok {
			return
		}
		other, s := planned, w.State(p)
		if many := policytest.Count(t, p); many != n {
			if other, ok = p.Undo(w.Now, w.Now, at, many, s); !ok {
				return
			}
		}
		s = other.Apply(s)
		if planned.Holds(s) {
			if _, ok := p.Undo(w.Now, w.Now, at, n, s); !ok {
				t.Fatalf("%v: an undo of %d holds in %v, where a fresh one gives nothing back: %+v", p, n, s, planned)
			}
		}
	})
}

// Law 2 for giving back: an undo holds in the state that it was planned from,
// for any receipt and any number of actions.
func TestLawUndoIsLive(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		w.Take(p, policytest.Count(t, p), 1)
		at := w.Now - rapid.Int64Range(0, 20).Draw(t, "ago")
		n := policytest.Count(t, p) + rapid.Int64Range(0, 2).Draw(t, "more")
		if u, ok := p.Undo(w.Now, at, at, n, w.State(p)); ok && !u.Holds(w.State(p)) {
			t.Fatalf("%v: the plan to give back %d in %v does not hold there: %+v", p, n, w.State(p), u)
		}
	})
}

// Someone else may have written anything into an item. No method may panic on
// it or run without end, and no caller is told a negative number of actions or
// a negative wait.
func TestAnyStateIsReadWithoutPanic(t *testing.T) {
	law(t, func(t *rapid.T, w *policytest.World, p Policy, n int64) {
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
