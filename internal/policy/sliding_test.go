package policy_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
)

// A clock that is ahead writes in the third period. A clock that is a period
// behind still needs the first one.
func TestASlidingCounterKeepsAPeriodForAClockBehind(t *testing.T) {
	timeline(t, "sliding 50/1h", []moment{
		{at: 0, take: 40, want: "ok 40/50"},
		{at: 2 * time.Hour, take: 1, want: "ok 1/50"},
		{at: 90 * time.Minute, want: "is 20/50"}, // half of the first period is covered
		{at: 90 * time.Minute, take: 31, want: "no 20/50 wait 1ms"},
		{at: 130 * time.Minute, undo: 1, of: 0, want: "no 1/50"}, // its period has no weight any more
	})
}

// An action counts until the sliding window has left its period, so until then it
// can be given back.
func TestASlidingCounterGivesBackInThePreviousPeriod(t *testing.T) {
	timeline(t, "sliding 50/1h", []moment{
		{at: 0, take: 40, want: "ok 40/50"},
		{at: 90 * time.Minute, undo: 10, of: 0, want: "ok 15/50"}, // half of 30
	})
}

const thisHour, previousHour, nextHour = "c472222", "c472221", "c472223"

// A plan of a process that knows nothing holds exactly where the action fits, up
// to a limit of 65.
func TestAColdPlanOfASlidingCounterHoldsWhereItFits(t *testing.T) {
	for _, text := range []string{"sliding 9/1h", "sliding 50/1h", "sliding 65/1h"} {
		p := Must(text)
		for _, when := range []time.Duration{0, time.Minute, 20 * time.Minute, 45 * time.Minute, 59 * time.Minute} {
			u, _ := p.Take(at(when), 1, 1, nil)
			for x := range int64(70) {
				for y := range int64(140) {
					s := policytest.Values{thisHour: x, previousHour: y}.State()
					if _, fits := p.Take(at(when), 1, 1, s); u.Holds(s) != fits {
						t.Fatalf("%s at %v: the cold plan holds in %v: %v, want %v", text, when, s, !fits, fits)
					}
				}
			}
		}
	}
}

// With a higher limit, the guard has only some steps. If the process knows the
// previous period, the step of its weight is one of them, so the plan holds
// whatever others have counted since.
func TestAPlanOfAHighSlidingCounterHasTheStepItNeeds(t *testing.T) {
	const half = 30 * time.Minute
	p, known := Must("sliding 200/1h"), policytest.Values{previousHour: 75}.State() // 37 of them count
	u, ok := p.Take(at(half), 1, 1, known)
	for x := range int64(200) {
		s := policytest.Values{thisHour: x, previousHour: 75}.State()
		if _, fits := p.Take(at(half), 1, 1, s); !ok || u.Holds(s) != fits {
			t.Fatalf("the plan holds in %v: %v, want %v", s, !fits, fits)
		}
	}
}

// In the last 7 s of a period, a guard tests that no clock has begun the next
// one. Before that it is as short as it can be.
func TestTheGuardOfASlidingCounterLooksAtTheNextPeriod(t *testing.T) {
	p := Must("sliding 50/1h")
	for when, looks := range map[time.Duration]bool{
		0: false, time.Hour - 7001*time.Millisecond: false, time.Hour - 7*time.Second: true, time.Hour - time.Millisecond: true,
	} {
		u, ok := p.Take(at(when), 1, 1, policytest.Values{thisHour: 1}.State())
		if begun := (policytest.Values{thisHour: 1, nextHour: 1}.State()); !ok || u.Holds(begun) == looks {
			t.Errorf("at %v the plan holds in %v: %v, want %v", when, begun, looks, !looks)
		}
		if _, ok := p.Take(at(when), 1, 1, policytest.Values{nextHour: 50}.State()); ok == looks {
			t.Errorf("at %v a full next period is seen: %v, want %v", when, !ok, looks)
		}
		if zero := (policytest.Values{thisHour: 1, nextHour: 0}.State()); looks {
			if u, ok := p.Take(at(when), 1, 1, zero); !ok || !u.Holds(zero) || u.Holds(policytest.Values{thisHour: 1, nextHour: 1}.State()) {
				t.Errorf("at %v the plan in %v is %+v", when, zero, u)
			}
		}
	}
}

// An update removes the old counters that it knows. It removes others blindly
// only if it knows nothing, because a shorter update costs less.
func TestASlidingCounterForgetsWhatItKnows(t *testing.T) {
	p := Must("sliding 5/1m")
	const now = 100*60_000 + 30_000
	for _, tt := range []struct {
		known State
		want  []string
	}{
		{policytest.Values{"c100": 1, "c99": 2, "c98": 3}.State(), nil},
		{policytest.Values{"c97": 1, "c96": 1, "c5": 1, "x5": 1, "c05": 1}.State(), []string{"c5", "c96", "c97"}},
		{nil, []string{"c97", "c96", "c95", "c94", "c93", "c92", "c91", "c90", "c89", "c88", "c87", "c86"}},
	} {
		u, ok := p.Take(now, 1, 1, tt.known)
		var removed []string
		for _, act := range u.Acts {
			if act.Verb == Delete {
				removed = append(removed, act.Attr)
			}
		}
		if !ok || !slices.Equal(removed, tt.want) {
			t.Errorf("knowing %v, it removes %v, want %v", tt.known, removed, tt.want)
		}
	}
}

// A window of 2 s, and an action by a clock that is 2 s ahead of one whose update is
// 3 s late: the item is three periods ahead.
func TestASlidingCounterFollowsClocksAFewPeriodsAhead(t *testing.T) {
	p, s := Must("sliding 1/2s"), State{}
	u, _ := p.Take(12_000, 1, 1, s)
	cold, ok := p.Take(7_000, 1, 1, s)
	if !ok {
		t.Fatal("an empty item refuses")
	}
	u.ApplyTo(&s)
	if cold.Holds(s) {
		t.Error("a plan for an empty item holds after an action three periods later")
	}
	if _, ok := p.Take(7_000, 1, 1, s); ok {
		t.Error("a clock that is behind takes a second action of 1/2s")
	}
	if r := p.Read(7_000, 1, s); r.Used != 1 || r.WindowKey != 6 || r.ResetAt != 16_000 {
		t.Errorf("the figures of a clock that is behind are %+v, want those of period 6", r)
	}
}

// Beside other limits, an action counts in one period, which is the one of CountedAt. So a
// release gives it back there, even if periods are short and the clock ahead has begun two.
func TestASlidingCounterBesideOthersCountsAtTheTimeThatItTells(t *testing.T) {
	p, s := Must("brief: sliding 10/5s, hour: 100/1h"), State{}
	for _, at := range []int64{18_000_000, 18_005_000} {
		s = take(t, p, at, 2, s)
	}
	const now = 17_999_999
	u, ok := p.Take(now, 1, 1, s)
	after := u.Apply(s)
	if !ok || u.CountedAt != 18_005_000 || after.Get("brief_c3601") != 3 {
		t.Errorf("an action counts at %d in %v, want at 18005000", u.CountedAt, after)
	}
	back, ok := p.Undo(now, now, u.CountedAt, 1, after)
	if got := back.Apply(after); !ok || !slices.Equal(got, s) {
		t.Errorf("given back in %v it leaves %v, want %v", after, got, s)
	}
}
