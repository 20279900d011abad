package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
)

// A slot is n actions of a log that were counted at a time and are renewed later.
type slot struct {
	p      Policy
	n, at  int64
	before State // without the actions
	taken  State // with them
	now    int64 // the time of the renewal; at most a little after their end
}

// onEachSlot runs check on slots that are still counted or have just expired, in each
// world whose policies have a log.
func onEachSlot(t *testing.T, check func(*rapid.T, *policytest.World, slot)) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		w.Now = w.Latest
		s := slot{p: w.Any(t), at: w.Now}
		s.n, s.before = policytest.Count(t, s.p), w.State(s.p)
		if !s.p.HasLog() || s.p.Queues() || !w.Take(s.p, s.n, 1) {
			return
		}
		s.taken = w.State(s.p)
		window := s.p.HeldUntil(0)
		w.Now = s.at + rapid.OneOf(rapid.Int64Range(1, window+2), rapid.Int64Range(window-1, window)).Draw(t, "age")
		s.now = w.Now
		check(t, w, s)
	})
}

// onEachRenewal runs check on the slots that can be renewed, with the update.
func onEachRenewal(t *testing.T, check func(*rapid.T, *policytest.World, slot, Update)) {
	onEachSlot(t, func(t *rapid.T, w *policytest.World, s slot) {
		if u, ok := s.p.Renew(s.now, s.at, s.n, s.taken); ok {
			check(t, w, s, u)
		}
	})
}

// log returns the figures of the log of p in s at now.
func (s slot) log(now int64, state State) Reading {
	r := s.p.Read(now, 0, state)
	for i, rate := range s.p.Rates() {
		if rate.Kind == "log" && r.Each != nil {
			return r.Each[i]
		}
	}
	return r
}

// Actions can be renewed as long as they count, and not for a millisecond more. The
// plan holds in the state that it was made from.
func TestLawRenewIsLive(t *testing.T) {
	onEachSlot(t, func(t *rapid.T, _ *policytest.World, s slot) {
		u, ok := s.p.Renew(s.now, s.at, s.n, s.taken)
		if counts := s.now < s.p.HeldUntil(s.at); ok != counts {
			t.Fatalf("%v: %d actions of %d are renewed at %d: %v, and they count: %v", s.p, s.n, s.at, s.now, ok, counts)
		}
		if ok && !u.Holds(s.taken) {
			t.Fatalf("%v: the renewal of %d in %v does not hold there: %+v", s.p, s.n, s.taken, u)
		}
	})
}

// Where the guard of a renewal holds, whatever was counted, renewed or given back
// since, a fresh renewal is possible too, and it does not matter which one is applied.
func TestLawRenewIsSound(t *testing.T) {
	onEachRenewal(t, func(t *rapid.T, w *policytest.World, s slot, planned Update) {
		now := w.Later(t, anyPolicy).State(s.p)
		undo := func(now, at, n int64, state State) (Update, bool) { return s.p.Undo(now, at, at, n, state) }
		for _, plan := range []func(now, at, n int64, s State) (Update, bool){s.p.Renew, s.p.Free, undo} {
			if u, ok := plan(s.now, s.at, rapid.Int64Range(1, s.n).Draw(t, "other"), now); ok && rapid.Bool().Draw(t, "changed") {
				now = u.Apply(now)
			}
		}
		if !planned.Holds(now) {
			return
		}
		fresh, ok := s.p.Renew(s.now, s.at, s.n, now)
		if !ok {
			t.Fatalf("%v: a renewal of %d holds in %v, where a fresh one is not possible: %+v", s.p, s.n, now, planned)
		}
		unchanged(t, w, s.now, now, planned.Apply(now))
		for _, q := range w.Policies {
			if a, b := q.Read(s.now, 0, planned.Apply(now)), q.Read(s.now, 0, fresh.Apply(now)); !sameFigures(a, b) {
				t.Fatalf("%v: after the old renewal %+v, after a fresh one %+v", q, a, b)
			}
		}
	})
}

// unchanged compares all figures but when they reset.
func unchanged(t *rapid.T, w *policytest.World, now int64, before, after State) {
	for _, q := range w.Policies {
		a, b := q.Read(now, 0, before), q.Read(now, 0, after)
		if a.Each == nil {
			a.Each, b.Each = []Reading{a}, []Reading{b}
		}
		for i, was := range a.Each {
			is := b.Each[i]
			if was.Limit != is.Limit || was.Used != is.Used || was.Remaining != is.Remaining || was.Wait != is.Wait || is.Used < 0 {
				t.Fatalf("%v: a renewal turns %+v into %+v", q, was, is)
			}
		}
	}
}

// Renewed actions count until exactly one window after the renewal. All others came
// before it, so they are gone by then.
func TestLawARenewedSlotCountsForOneWindow(t *testing.T) {
	onEachRenewal(t, func(t *rapid.T, _ *policytest.World, s slot, u Update) {
		end, after := s.p.HeldUntil(s.now), u.Apply(s.taken)
		if used := s.log(end-1, after).Used; used != s.n {
			t.Fatalf("%v: %d are renewed, and a millisecond before their end %d count", s.p, s.n, used)
		}
		if used := s.log(end, after).Used; used != 0 {
			t.Fatalf("%v: at the end of the renewed actions %d count", s.p, used)
		}
	})
}

// Only the new receipt gives renewed actions back, and then the log looks as if they
// had never been counted.
func TestLawARenewalReplacesTheReceipt(t *testing.T) {
	onEachRenewal(t, func(t *rapid.T, _ *policytest.World, s slot, u Update) {
		after := u.Apply(s.taken)
		_, others := s.p.Free(s.now, s.at, s.n, s.before) // actions of the same millisecond are alike
		if _, ok := s.p.Free(s.now, s.at, s.n, after); ok != others {
			t.Fatalf("%v: the old receipt gives back after a renewal: %v, want %v", s.p, ok, others)
		}
		if _, ok := s.p.Renew(s.now, s.at, s.n, after); ok != others {
			t.Fatalf("%v: the old receipt renews after a renewal: %v, want %v", s.p, ok, others)
		}
		back, ok := s.p.Free(s.now, s.now, s.n, after)
		if !ok || !back.Holds(after) {
			t.Fatalf("%v: renewed actions can't be given back: %+v", s.p, back)
		}
		if got, want := s.log(s.now, back.Apply(after)), s.log(s.now, s.before); got.Used != want.Used || got.Remaining != want.Remaining {
			t.Fatalf("%v: after a check, a renewal and a release %+v, want %+v", s.p, got, want)
		}
	})
}

// A clock that is ahead has seen a slot expire, and has lowered top below it. On a clock
// behind the slot counts still. It is not renewed, or a lower limit would not count it.
func TestASlotAboveTopIsNotRenewed(t *testing.T) {
	high, low := Must("log 5/10s"), Must("log 2/10s")
	const at, ahead = int64(1_700_000_000_000), 2_000
	s := take(t, high, at, 3, take(t, low, at-1, 2, nil)) // three slots above the lower limit
	planned, ok := high.Renew(at+9_999, at, 3, s)
	if !ok || !planned.Holds(s) {
		t.Fatalf("three slots that count are not renewed: %+v", planned)
	}
	for i := range int64(2) { // top falls as low as the limit
		s = take(t, low, at+9_999+ahead+i, 1, s)
	}
	if used := low.Read(at+9_999, 0, s).Used; used != 2 {
		t.Fatalf("%d slots are used below top, want 2: %v", used, s)
	}
	if planned.Holds(s) {
		t.Errorf("a renewal that was planned before holds in %v", s)
	}
	if u, ok := high.Renew(at+9_999, at, 3, s); ok {
		t.Errorf("slots above top are renewed in %v: %+v", s, u)
	}
}
