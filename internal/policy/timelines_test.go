package policy_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
)

// A moment is one step of a timeline: somebody takes or gives back actions, or
// only reads.
type moment struct {
	at   time.Duration // since start
	take int64         // actions to take
	undo int64         // actions to give back, which were taken at of
	of   time.Duration
	now  string // the policy from here on; empty: as before
	want string // "ok" or "no", used/limit, the wait, the binding limit and the place
}

// start begins an hour of the clock.
const start = 472_222 * 3_600_000

// timeline plays the moments on one item of each window.
func timeline(t *testing.T, text string, moments []moment) map[int64]State {
	t.Helper()
	p := Must(text)
	items := map[int64]State{}
	for _, m := range moments {
		if m.now != "" {
			p = Must(m.now)
		}
		now := start + m.at.Milliseconds()
		window, _ := p.Item(now)
		u, ok := p.Take(now, m.take, 1, items[window])
		words, r := "no", p.Read(now, m.take, items[window])
		switch {
		case m.undo > 0:
			u, ok = p.Undo(now, start+m.of.Milliseconds(), start+m.of.Milliseconds(), m.undo, items[window])
		case m.take == 0:
			words = "is"
		}
		records := false
		if !ok && m.take > 0 { // a refusal records another pace
			u, _, records = p.Repace(now, items[window])
		}
		if ok || records {
			if !u.Holds(items[window]) {
				t.Fatalf("at %v: the update does not hold in %v: %+v", m.at, items[window], u)
			}
			items[window] = u.Apply(items[window])
		}
		if ok {
			words, r = "ok", p.Read(now, 0, items[window])
		}
		words += fmt.Sprintf(" %d/%d", r.Used, r.Limit)
		if r.Wait > 0 {
			words += " wait " + r.Wait.String()
		}
		if r.Name != "" {
			words += " by " + r.Name
		}
		if ok && u.ReadyAt > now {
			words += " at " + time.Duration((u.ReadyAt-start)*int64(time.Millisecond)).String()
		}
		if words != m.want {
			t.Fatalf("at %v: take %d, undo %d: %s, want %s (%v)", m.at, m.take, m.undo, words, m.want, items[window])
		}
	}
	return items
}

// take counts n actions in s, and returns the state after them.
func take(t *testing.T, p Policy, now, n int64, s State) State {
	t.Helper()
	u, ok := p.Take(now, n, uint64(len(s)), s)
	if !ok || !u.Holds(s) {
		t.Fatalf("%v: at %d %d more do not fit in %v: %+v", p, now, n, s, u)
	}
	return u.Apply(s)
}

func TestFixedWindowTimeline(t *testing.T) {
	timeline(t, "3/1m", []moment{
		{at: 0, take: 2, want: "ok 2/3"},
		{at: 59 * time.Second, take: 2, want: "no 2/3 wait 1s"},
		{at: 59 * time.Second, take: 1, want: "ok 3/3"},
		{at: 59999 * time.Millisecond, take: 1, want: "no 3/3 wait 1ms"},
		{at: 60 * time.Second, take: 3, want: "ok 3/3"}, // twice the limit in a moment
		{at: 61 * time.Second, undo: 1, of: 60 * time.Second, want: "ok 2/3"},
		{at: 61 * time.Second, undo: 1, of: 59 * time.Second, want: "no 2/3"}, // of the window before
		{at: 61 * time.Second, undo: 3, of: 60 * time.Second, want: "no 2/3"}, // more than there is
		{at: 58 * time.Second, want: "is 3/3"},                                // the clock stepped back
	})
}

func TestLogTimeline(t *testing.T) {
	timeline(t, "log 5/12h", []moment{
		{at: 0, take: 2, want: "ok 2/5"},
		{at: time.Hour, take: 2, want: "ok 4/5"},
		{at: 2 * time.Hour, take: 2, want: "no 4/5 wait 10h0m0s"},
		{at: 2 * time.Hour, take: 1, want: "ok 5/5"},
		{at: 3 * time.Hour, undo: 1, of: 2 * time.Hour, want: "ok 4/5"},
		{at: 3 * time.Hour, undo: 1, of: 2 * time.Hour, want: "no 4/5"}, // its slot is empty already
		{at: 12*time.Hour - time.Millisecond, take: 2, want: "no 4/5 wait 1ms"},
		{at: 12 * time.Hour, take: 2, want: "ok 4/5"},
		{at: 12 * time.Hour, undo: 2, of: 0, want: "no 4/5"}, // expired
		{at: 25 * time.Hour, want: "is 0/5"},
	})
}

// 60 actions are counted when the limit is lowered to 50. At most 50 may lie
// within 12 hours, so 11 of the 60 have to expire before one more is allowed.
func TestALoweredLogRefusesUntilEnoughActionsExpire(t *testing.T) {
	moments := []moment{}
	for i := range int64(60) {
		moments = append(moments, moment{at: time.Duration(i) * time.Minute, take: 1, want: fmt.Sprintf("ok %d/100", i+1)})
	}
	timeline(t, "log 100/12h", append(moments,
		moment{at: time.Hour, take: 1, now: "log 50/12h", want: "no 60/50 wait 11h10m0s"},
		moment{at: 12*time.Hour + 10*time.Minute - time.Millisecond, take: 1, want: "no 50/50 wait 1ms"},
		moment{at: 12*time.Hour + 10*time.Minute, take: 1, want: "ok 50/50"},
		moment{at: 12*time.Hour + 10*time.Minute, take: 1, want: "no 50/50 wait 1m0s"},
		moment{at: 12*time.Hour + 10*time.Minute, take: 1, now: "log 100/12h", want: "ok 51/100"}, // raised again
	))
}

// After the limit was lowered, top stays where slots may be used. It falls
// again once those slots have expired, and then the guard is short again.
func TestTopFallsWhenHighSlotsExpire(t *testing.T) {
	items := timeline(t, "log 100/1h", []moment{
		{at: 0, take: 100, want: "ok 100/100"},
		{at: time.Minute, take: 1, now: "log 10/1h", want: "no 100/10 wait 59m0s"},
	})
	if top := items[0].Get("top"); top != 100 {
		t.Errorf("top is %d while all slots are used, want 100", top)
	}
	p, now := Must("log 10/1h"), int64(start+3_600_000)
	u, ok := p.Take(now, 1, 1, items[0])
	if !ok || len(u.If[0]) < 91 {
		t.Fatalf("the first update of a lowered log is %+v, %v, want a test of at least 91 slots", u, ok)
	}
	s := u.Apply(items[0])
	if s.Get("top") != 10 {
		t.Errorf("top is %d after all high slots expired, want 10", s.Get("top"))
	}
	u, ok = p.Take(now, 1, 1, s)
	if !ok || len(u.If[0]) != 2 {
		t.Errorf("the next update is %+v, %v, want a test of one slot and of top", u, ok)
	}
}

func TestSlidingTimeline(t *testing.T) {
	timeline(t, "sliding 50/1h", []moment{
		{at: 0, take: 40, want: "ok 40/50"},
		{at: 45 * time.Minute, take: 11, want: "no 40/50 wait 15m0.001s"},
		{at: 75 * time.Minute, want: "is 30/50"}, // 45 of 60 minutes of the previous hour are covered
		{at: 105 * time.Minute, take: 40, want: "ok 50/50"},
		{at: 105 * time.Minute, take: 1, want: "no 50/50 wait 1ms"},
		{at: 105*time.Minute + time.Millisecond, take: 1, want: "ok 50/50"},
		{at: 106 * time.Minute, undo: 40, of: 105 * time.Minute, want: "ok 10/50"},
		{at: 30 * time.Minute, undo: 40, of: 0, want: "ok 0/50"}, // a clock that is a period behind
		{at: 200 * time.Minute, undo: 1, of: 20 * time.Minute, want: "no 0/50"},
		{at: 5 * time.Hour, want: "is 0/50"},
	})
}

func TestReservoirTimeline(t *testing.T) {
	timeline(t, "reservoir 2/10s ahead 25s", []moment{
		{at: 3 * time.Second, take: 1, want: "ok 1/2"},
		{at: 3 * time.Second, take: 1, want: "ok 2/2"},
		{at: 4 * time.Second, take: 1, want: "ok 2/2 at 10s"},
		{at: 4 * time.Second, take: 1, want: "ok 2/2 at 10s"},
		{at: 4 * time.Second, take: 1, want: "ok 2/2 at 20s"},
		{at: 4 * time.Second, take: 1, want: "ok 2/2 at 20s"},
		{at: 4 * time.Second, take: 1, want: "no 2/2 wait 1s"}, // the next place is 26 s ahead
		{at: 5 * time.Second, take: 1, want: "ok 2/2 at 30s"},
		{at: 5 * time.Second, take: 1, now: "reservoir 2/10s", want: "no 2/2 wait 25s"}, // without times to come
		{at: 30 * time.Second, take: 1, want: "ok 2/2"},
		{at: 31 * time.Second, undo: 1, of: 30 * time.Second, want: "no 2/2"}, // a place is never given back
	})
}

func TestSeveralLimitsTimeline(t *testing.T) {
	timeline(t, "minute: 10/1m, day: 15/1d", []moment{
		{at: 0, take: 11, want: "no 0/10 wait 1m0s by minute"}, // never fits
		{at: 0, take: 10, want: "ok 10/10 by minute"},
		{at: 30 * time.Second, take: 1, want: "no 10/10 wait 30s by minute"},
		{at: time.Minute, take: 6, want: "no 10/15 wait 1h59m0s by day"}, // none is counted
		{at: time.Minute, take: 5, want: "ok 15/15 by day"},
		{at: 2 * time.Minute, take: 1, want: "no 15/15 wait 1h58m0s by day"},
		{at: 2 * time.Minute, undo: 5, of: time.Minute, want: "ok 10/15 by day"}, // the minute has passed already
		{at: 2 * time.Minute, take: 5, now: "day: 15/1d, minute: 10/1m", want: "ok 15/15 by day"},
	})
}
