package ratelimit_test

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

// policies are all of them, in a few configurations: each is held to every law.
var policies = map[string]Policy{
	"fixed window 1 in 1 ms":   FixedWindow{Limit: 1, Window: time.Millisecond},
	"fixed window 3 in 7 ms":   FixedWindow{Limit: 3, Window: 7 * time.Millisecond},
	"fixed window 10 a minute": FixedWindow{Limit: 10, Window: time.Minute},
	"fixed window 100 an hour": FixedWindow{Limit: 100, Window: time.Hour},

	"interval 5 s":            TokenBucket{Limit: 1, Window: 5 * time.Second, Burst: 1},
	"bucket 1 every ms":       TokenBucket{Limit: 1, Window: time.Millisecond, Burst: 1},
	"bucket 10 a minute, 15":  TokenBucket{Limit: 10, Window: time.Minute, Burst: 15},
	"bucket 3 in 6 ms, 2":     TokenBucket{Limit: 3, Window: 6 * time.Millisecond, Burst: 2},
	"log 1 in 1 ms":           SlidingLog{Limit: 1, Window: time.Millisecond},
	"log 3 in 7 ms":           SlidingLog{Limit: 3, Window: 7 * time.Millisecond},
	"log 100 in 12 hours":     SlidingLog{Limit: 100, Window: 12 * time.Hour},
	"counter 1 in 1 ms":       SlidingWindow{Limit: 1, Window: time.Millisecond},
	"counter 3 in 7 ms":       SlidingWindow{Limit: 3, Window: 7 * time.Millisecond},
	"counter 50 an hour":      SlidingWindow{Limit: 50, Window: time.Hour},
	"counter 1000 a day":      SlidingWindow{Limit: 1000, Window: 24 * time.Hour},
	"reservoir 1 in 1 ms":     Reservoir{Limit: 1, Window: time.Millisecond, Ahead: 3 * time.Millisecond},
	"reservoir 3 in 7 ms":     Reservoir{Limit: 3, Window: 7 * time.Millisecond, Ahead: 10 * time.Millisecond},
	"reservoir 10 in 10 s":    Reservoir{Limit: 10, Window: 10 * time.Second, Ahead: 15 * time.Minute},
	"reservoir, none to come": Reservoir{Limit: 10, Window: 10 * time.Second},
	"10 a minute, 25 an hour": Several{
		{"minute", FixedWindow{Limit: 10, Window: time.Minute}}, {"hour", FixedWindow{Limit: 25, Window: time.Hour}},
	},
	"a window, a bucket and a log": Several{
		{"window", FixedWindow{Limit: 5, Window: 10 * time.Millisecond}},
		{"bucket", TokenBucket{Limit: 2, Window: 6 * time.Millisecond, Burst: 4}},
		{"log", SlidingLog{Limit: 6, Window: 20 * time.Millisecond}},
	},
}

// queues says whether the policy gives places to come, one a request, beyond
// the figures of the window.
func (w *world) queues() bool {
	_, ok := w.policy.(Reservoir)
	return ok
}

// A world is the items of one user and activity, at a moment.
type world struct {
	policy Policy
	now    int64
	latest int64           // of its moments
	items  map[int64]State // by Place's window
}

func (w *world) state() State { return w.items[w.policy.Place(w.now).Window] }

func (w *world) limit() int64 {
	limit, _ := w.policy.Quota()
	if w.queues() {
		return 1
	}
	return limit
}

// take plans n actions and, where it may, counts them.
func (w *world) take(n int64) bool {
	u, ok := w.policy.Plan(w.now, n)(w.state())
	if ok {
		w.items[w.policy.Place(w.now).Window] = u.Apply(w.state())
	}
	return ok
}

// reach draws a world that a policy can come to: actions counted at moments
// that go on, and sometimes a little back.
func reach(t *rapid.T, p Policy) *world {
	_, window := p.Quota()
	w := &world{policy: p, now: 1_700_000_000_000 + rapid.Int64Range(0, 3*window.Milliseconds()).Draw(t, "start"), items: map[int64]State{}}
	for range rapid.IntRange(0, 8).Draw(t, "steps") {
		w.now += rapid.Int64Range(-window.Milliseconds()/10, window.Milliseconds()*2/3).Draw(t, "pause")
		w.latest = max(w.latest, w.now)
		w.take(rapid.Int64Range(1, w.limit()).Draw(t, "n"))
	}
	return w
}

// law runs check on many worlds of every policy.
func law(t *testing.T, check func(*rapid.T, *world)) {
	for name, p := range policies {
		t.Run(name, rapid.MakeCheck(func(r *rapid.T) { check(r, reach(r, p)) }))
	}
}

// later goes on for a while from w at the same moment, in a copy.
func (w *world) later(t *rapid.T) *world {
	l := &world{policy: w.policy, now: w.now, items: map[int64]State{}}
	maps.Copy(l.items, w.items)
	for range rapid.IntRange(0, 5).Draw(t, "meanwhile") {
		l.take(rapid.Int64Range(1, w.limit()).Draw(t, "n meanwhile"))
	}
	return l
}

func TestLawNothingTakesAnyCountUpToTheLimit(t *testing.T) {
	law(t, func(t *rapid.T, w *world) {
		n := rapid.Int64Range(1, w.limit()).Draw(t, "n")
		u, ok := w.policy.Plan(w.now, n)(nil)
		if !ok || !u.Holds(nil) {
			t.Fatalf("Plan(%d) in nothing = %v, %v, want an update that holds", n, u, ok)
		}
		if _, ok := w.policy.Plan(w.now, w.limit()+1)(nil); ok && !w.queues() {
			t.Fatalf("Plan(%d) is taken, above the limit", w.limit()+1)
		}
	})
}

// Law 1: Plan(s) = (u, true) and u holds in t: applying u in t is legal, and
// decides as Plan(t) does, however stale s is.
func TestLawSound(t *testing.T) {
	law(t, func(t *rapid.T, w *world) {
		n := rapid.Int64Range(1, w.limit()).Draw(t, "n")
		u, ok := w.policy.Plan(w.now, n)(w.state())
		if !ok {
			return
		}
		now := w.later(t)
		fresh, allowed := now.policy.Plan(now.now, n)(now.state())
		holds := u.Holds(now.state())
		if holds && !allowed {
			t.Fatalf("an update planned in %v holds in %v, where nothing is allowed", w.state(), now.state())
		}
		if _, ok := w.policy.(FixedWindow); ok && allowed && !holds { // the others may take a second look
			t.Fatalf("an update planned in %v does not hold in %v, where it is allowed", w.state(), now.state())
		}
		if !holds {
			return
		}
		got := w.policy.Figures(w.now, u.Apply(now.state()))
		want := w.policy.Figures(w.now, fresh.Apply(now.state()))
		if got != want {
			t.Fatalf("after the stale update %+v, after a fresh one %+v", got, want)
		}
		if w.queues() {
			return
		}
		before := w.policy.Figures(w.now, now.state())
		_, several := w.policy.(Several) // another one may be the tightest then
		if got.Remaining != before.Remaining-n || !several && got.Used != before.Used+n {
			t.Fatalf("%d used, then %d more: %d, with a limit of %d", before.Used, n, got.Used, w.limit())
		}
	})
}

// Law 2: Plan(s) = (u, true): u holds in s, or the loop would spin.
func TestLawLive(t *testing.T) {
	law(t, func(t *rapid.T, w *world) {
		n := rapid.Int64Range(1, w.limit()+1).Draw(t, "n")
		if u, ok := w.policy.Plan(w.now, n)(w.state()); ok && !u.Holds(w.state()) {
			t.Fatalf("Plan(%d) in %v = %v, which does not hold there", n, w.state(), u)
		}
	})
}

// Law 3: Plan(s) refuses and t is later than s: Plan(t) refuses.
func TestLawMonotone(t *testing.T) {
	law(t, func(t *rapid.T, w *world) {
		n := rapid.Int64Range(1, w.limit()).Draw(t, "n")
		if _, ok := w.policy.Plan(w.now, n)(w.state()); ok {
			return
		}
		now := w.later(t)
		if _, ok := w.policy.Plan(w.now, n)(now.state()); ok {
			t.Fatalf("%d refused in %v, taken later in %v", n, w.state(), now.state())
		}
	})
}

// Law 4: dropping an item after its expiry changes no decision, and no clock
// that is up to 120 s behind sees the difference.
func TestLawExpiry(t *testing.T) {
	law(t, func(t *rapid.T, w *world) {
		w.now = max(w.now, w.latest)
		place := w.policy.Place(w.now)
		s := w.state()
		_, window := w.policy.Quota()
		at := place.Expires*1000 - 120_000 + rapid.Int64Range(0, 3*window.Milliseconds()).Draw(t, "after")
		if w.policy.Place(at).Window != place.Window {
			s = nil // counted elsewhere by now
		}
		if got, want := w.policy.Figures(at, s), w.policy.Figures(at, nil); got.Used != want.Used || got.Remaining != want.Remaining {
			t.Fatalf("%v counts %+v at its expiry, nothing counts %+v", s, got, want)
		}
	})
}

// Who waits as told is admitted; who waits a millisecond less is not.
func TestLawWaitIsKept(t *testing.T) {
	law(t, func(t *rapid.T, w *world) {
		n := rapid.Int64Range(1, w.limit()).Draw(t, "n")
		w.now = max(w.now, w.latest) // nothing is counted in times to come
		wait := w.policy.Wait(w.now, n, w.state())
		_, fits := w.policy.Plan(w.now, n)(w.state())
		if fits != (wait == 0) {
			t.Fatalf("%d fit in %v: %v, and the wait is %v", n, w.state(), fits, wait)
		}
		if fits {
			return
		}
		early, late := *w, *w
		early.now += wait.Milliseconds() - 1
		late.now += wait.Milliseconds()
		if early.take(n) {
			t.Errorf("%d in %v, told to wait %v, are admitted a millisecond early", n, w.state(), wait)
		}
		if !late.take(n) {
			t.Errorf("%d in %v, told to wait %v, are refused then", n, w.state(), wait)
		}
	})
}

func TestLawRemainingIsTheMostThatFits(t *testing.T) {
	law(t, func(t *rapid.T, w *world) {
		if w.queues() {
			return
		}
		left := w.policy.Figures(w.now, w.state()).Remaining
		for n := range w.limit() + 1 {
			if _, ok := w.policy.Plan(w.now, n+1)(w.state()); ok != (n < left) {
				t.Fatalf("%d remain in %v, and %d are taken: %v", left, w.state(), n+1, ok)
			}
		}
	})
}

func TestLawReleaseUndoes(t *testing.T) {
	law(t, func(t *rapid.T, w *world) {
		w.now = max(w.now, w.latest) // a bucket gives nothing back of a time before it was full
		n := rapid.Int64Range(1, w.limit()).Draw(t, "n")
		before := w.policy.Figures(w.now, w.state())
		if w.queues() || !w.take(n) {
			return
		}
		plan, _ := w.policy.Release(w.now, w.now, n)
		u, ok := plan(w.state())
		if !ok || !u.Holds(w.state()) {
			t.Fatalf("%d just counted can't be released in %v", n, w.state())
		}
		if after := w.policy.Figures(w.now, u.Apply(w.state())); after.Used != before.Used || after.Remaining != before.Remaining {
			t.Fatalf("%+v, %d taken and released: %+v", before, n, after)
		}
		plan, _ = w.policy.Release(w.now, w.now, w.limit()+1)
		if u, ok := plan(w.state()); ok {
			after := w.policy.Figures(w.now, u.Apply(w.state()))
			if after.Used < 0 || after.Remaining > w.limit() {
				t.Fatalf("more than the limit released in %v: %+v", w.state(), after)
			}
		}
	})
}
