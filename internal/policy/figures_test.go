package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/testkit"
)

// at returns a moment in Unix milliseconds.
func at(d time.Duration) int64 { return start + d.Milliseconds() }

// What callers are told about a state, figure by figure.
func TestFigures(t *testing.T) {
	for _, tt := range []struct {
		what  string
		text  string
		taken []time.Duration // when one action each was taken
		at    time.Duration
		n     int64 // how many more the caller asks for
		want  string
	}{
		{"a window", "3/1m", []time.Duration{0, 0}, 50 * time.Second, 2, "2/3 in 1m0s, 1 left, reset 1m0s, window 0, wait 10s"},
		{"a log that still fits", "log 3/1h", []time.Duration{0, time.Minute}, 2 * time.Minute, 1, "2/3 in 1h0m0s, 1 left, reset 1h1m0s"},
		{"a log that waits for two", "log 3/1h", []time.Duration{0, time.Minute, 2 * time.Minute}, 3 * time.Minute, 2, "3/3 in 1h0m0s, 0 left, reset 1h2m0s, wait 58m0s"},
		{"a counter in its first period", "sliding 4/1h", []time.Duration{0, 0}, 10 * time.Minute, 1, "2/4 in 1h0m0s, 2 left, reset 2h0m0s, window 0"},
		{"a counter with two periods; 3 weigh 2 and the wait ends when they weigh 1", "sliding 4/1h", []time.Duration{0, 0, 0, time.Hour}, 75 * time.Minute, 2, "3/4 in 1h0m0s, 1 left, reset 3h0m0s, window 1, wait 5m0.001s"},
		{"a counter after its period", "sliding 4/1h", []time.Duration{0, 0}, 90 * time.Minute, 4, "1/4 in 1h0m0s, 3 left, reset 2h0m0s, window 1, wait 1ms"},
		{"a counter that another clock has begun", "sliding 4/1h", []time.Duration{time.Hour, time.Hour, time.Hour, time.Hour}, 59*time.Minute + 58*time.Second, 1, "4/4 in 1h0m0s, 0 left, reset 3h0m0s, window 1, wait 1h0m2.001s, counted 1h0m0s"},
		{"an empty reservoir", "reservoir 2/10s ahead 25s", nil, 3 * time.Second, 1, "0/2 in 10s, 2 left, reset 3s, window 0"},
		{"a reservoir with a place", "reservoir 2/10s ahead 25s", []time.Duration{0}, 3 * time.Second, 1, "1/2 in 10s, 1 left, reset 10s, window 0"},
		{"a reservoir that waits; the places of 0, 10 and 20 s are taken", "reservoir 2/10s ahead 25s", make([]time.Duration, 6), 3 * time.Second, 1, "2/2 in 10s, 0 left, reset 30s, window 0, wait 2s"},
		{"a reservoir after its window", "reservoir 2/10s ahead 25s", []time.Duration{0, 0}, 10 * time.Second, 1, "0/2 in 10s, 2 left, reset 10s, window 1"},
		{"a counter whose actions are too old", "sliding 4/1h", []time.Duration{0, 0}, 2 * time.Hour, 1, "0/4 in 1h0m0s, 4 left, reset 2h0m0s, window 2"},
		{"two equal limits", "a: 3/1m, b: 3/1m", []time.Duration{0}, time.Second, 3, "1/3 in 1m0s, 2 left, reset 1m0s, wait 59s by a"},
		{"several limits on a clock behind, which fit", "pace: bucket 1/5s burst 3, all: 9/1h", []time.Duration{6 * time.Second}, 5 * time.Second, 1, "1/3 in 15s, 2 left, reset 11s, counted 6s by pace"},
		{"several limits on a clock behind, which wait", "pace: bucket 1/5s, all: 9/1h", []time.Duration{6 * time.Second}, 5 * time.Second, 1, "1/1 in 5s, 0 left, reset 11s, wait 6s, counted 6s by pace"},
	} {
		p := Must(tt.text)
		var s State
		for _, when := range tt.taken {
			s = take(t, p, at(when), 1, s)
		}
		if got := inWords(p.Read(at(tt.at), tt.n, s), at(tt.at), p.CountedAt(at(tt.at), s)); got != tt.want {
			t.Errorf("%s: %s reads %v as\n%s, want\n%s", tt.what, tt.text, s, got, tt.want)
		}
	}
}

// inWords returns a reading at now: used/limit and window, what remains, when it resets and
// the window's number. The wait, when the action counts if that is not now, and the limit's
// name follow. Times and numbers count from start.
func inWords(r Reading, now, counted int64) string {
	since := func(millis int64) time.Duration { return time.Duration(millis-start) * time.Millisecond }
	words := fmt.Sprintf("%d/%d in %v, %d left, reset %v", r.Used, r.Limit, r.Window, r.Remaining, since(r.ResetAt))
	if r.WindowKey != 0 {
		words += fmt.Sprintf(", window %d", r.WindowKey-start/r.Window.Milliseconds())
	}
	if r.Wait != 0 {
		words += ", wait " + r.Wait.String()
	}
	if counted != now {
		words += ", counted " + since(counted).String()
	}
	if r.Name != "" {
		words += " by " + r.Name
	}
	return words
}

func TestWhenAnItemExpires(t *testing.T) {
	for text, want := range map[string]time.Duration{ // since start, and 120 s later
		"3/1m": time.Minute, "bucket 10/1m burst 15": 90 * time.Second, "log 100/12h": 12 * time.Hour,
		"sliding 50/1h": 2 * time.Hour, "sliding 50/1m": 4 * time.Minute, "reservoir 10/10s": 130 * time.Second,
		"reservoir 10/10s ahead 15m": 1030 * time.Second, "a: 3/1m, b: log 9/1h": time.Hour, "3/9ms": time.Second,
		// Locks are forgotten the longest lock after the end of the last one, which can be the longest. A
		// series that does not lock keeps them as long.
		"lockout 1/10m for 1h to 1d": 48 * time.Hour, "lockout 1/10m for 1d": 48 * time.Hour, "lockout 9/7d for 1h to 1d": 7 * 24 * time.Hour,
	} {
		if _, got := Must(text).Item(start); got != (at(want)+120_000)/1000 {
			t.Errorf("an item of %s expires after %v, want %v", text, time.Duration(got*1000-start-120_000)*time.Millisecond, want)
		}
	}
}

func TestHowManyWait(t *testing.T) {
	for _, tt := range []struct {
		taken   int
		readyAt time.Duration
		want    int64
	}{
		{2, 0, 0}, {3, 10 * time.Second, 1}, {4, 10 * time.Second, 2}, {5, 10 * time.Second, 2}, {5, 20 * time.Second, 3}, {6, 20 * time.Second, 4},
	} {
		for _, text := range []string{"reservoir 2/10s ahead 25s", "a: reservoir 2/10s ahead 25s, b: log 9/1h"} {
			p := Must(text)
			var s State
			for range tt.taken {
				s = take(t, p, at(3*time.Second), 1, s)
			}
			if got := p.Waiting(at(3*time.Second), at(tt.readyAt), s); got != tt.want {
				t.Errorf("%s: %d places are given, and %d wait until %v, want %d", text, tt.taken, got, tt.readyAt, tt.want)
			}
		}
	}
	if got := Must("10/1m").Waiting(start, start, policytest.Values{"activityCount": 9}.State()); got != 0 {
		t.Errorf("%d wait for a window, want 0", got)
	}
}

// Law 4 with windows of some seconds. Law 4 draws windows of milliseconds, and
// the rounding of the expiry to a whole second hides a mistake of that size.
//
// Each policy counts until it refuses, at several moments. When the item
// expires, it must read like an empty one on a clock that is 120 s behind.
func TestAFullItemMattersUntilItExpires(t *testing.T) {
	for _, text := range []string{
		"bucket 3/9s burst 4", "bucket 1/5s keep 1h", "log 3/7s", "sliding 3/7s",
		"reservoir 3/7s ahead 20s", "reservoir 1/10s ahead 15m", "a: reservoir 1/10s ahead 1m, b: 4/7s", "a: log 3/7s, b: sliding 9/40s",
	} {
		p := Must(text)
		for _, after := range []int64{0, 1, 3999, 6999, 9000} {
			now := start + after
			s := full(p, now, full(p, start, nil))
			_, expires := p.Item(now)
			at := expires*1000 - 120_000
			if got, want := p.Read(at, 0, s), p.Read(at, 0, nil); got.Used != want.Used || got.Remaining != want.Remaining {
				t.Errorf("%s: the item of %d ms expires while it reads %+v", text, after, got)
			}
		}
	}
}

// full counts actions at now until the policy refuses.
func full(p Policy, now int64, s State) State {
	for range 1000 {
		u, ok := p.Take(now, 1, 1, s)
		if !ok {
			break
		}
		s = u.Apply(s)
	}
	return s
}

// Figures are in actions: the limit and what is left are rounded down, and what is
// used is rounded up.
func TestFiguresOfACost(t *testing.T) {
	for _, tt := range []struct {
		text  string
		taken int64 // actions
		want  Reading
	}{
		{"100/1h cost 5", 3, Reading{Limit: 20, Used: 3, Remaining: 17}},
		{"100/1h cost 5", 20, Reading{Limit: 20, Used: 20, Remaining: 0}},
		{"9/1h cost 2", 4, Reading{Limit: 4, Used: 4, Remaining: 0}}, // one unit is left
		{"log 9/1h cost 2", 1, Reading{Limit: 4, Used: 1, Remaining: 3}},
		{"sliding 9/1h cost 2", 2, Reading{Limit: 4, Used: 2, Remaining: 2}},
		{"bucket 10/1h burst 7 cost 3", 1, Reading{Limit: 2, Used: 1, Remaining: 1}},
	} {
		p := Must(tt.text)
		s := take(t, p, 0, tt.taken, nil)
		got := p.Read(0, 0, s)
		if got.Limit != tt.want.Limit || got.Used != tt.want.Used || got.Remaining != tt.want.Remaining || p.Max() != tt.want.Limit {
			t.Errorf("%s after %d: limit %d, used %d, remaining %d, at most %d at once, want %+v", tt.text, tt.taken, got.Limit, got.Used, got.Remaining, p.Max(), tt.want)
		}
		if _, ok := p.Take(0, tt.want.Remaining+1, 0, s); ok {
			t.Errorf("%s takes one more than remain", tt.text)
		}
		if u, ok := p.Undo(0, 0, 0, tt.taken, s); !ok {
			t.Errorf("%s does not give back", tt.text)
		} else if s = u.Apply(s); p.Read(0, 0, s).Used != 0 {
			t.Errorf("%s has %d used after all were given back", tt.text, p.Read(0, 0, s).Used)
		}
	}
}

// Limits beside each other have costs of their own.
func TestEachLimitHasItsOwnCost(t *testing.T) {
	p := Must("minute: 6/1m, tokens: 100/1d cost 30")
	if p.Max() != 3 {
		t.Errorf("at most %d at once, want 3", p.Max())
	}
	if r := p.Read(0, 2, take(t, p, 0, 2, nil)); r.Name != "tokens" || r.Each[0].Used != 2 || r.Each[1].Used != 2 || r.Each[1].Remaining != 1 || r.Wait != 24*time.Hour {
		t.Errorf("%+v", r)
	}
}

// Each row counts its actions one after another in one window.
func TestWhichActionsCrossAShareOfTheLimit(t *testing.T) {
	for _, tt := range []struct {
		text  string
		count []int64
		want  []int64
	}{
		{"10/1m", []int64{7, 1, 1, 1}, []int64{0, 80, 0, 100}},
		{"10/1m", []int64{7, 3}, []int64{0, 100}},  // both at once
		{"10/1m", []int64{9, 1}, []int64{80, 100}}, // past 80 %
		{"10/1m", []int64{10}, []int64{100}},       // all at once
		{"10/1m", []int64{8, 2}, []int64{80, 100}}, // exactly
		{"1/1m", []int64{1}, []int64{100}},         // 80 % of 1 are 1
		{"2/1m", []int64{1, 1}, []int64{0, 100}},   // 80 % of 2 are 2
		{"4/1m", []int64{3, 1}, []int64{0, 100}},   // 80 % of 4 are 4
		{"5/1m", []int64{3, 1, 1}, []int64{0, 80, 100}},
		{"6/1m", []int64{4, 1, 1}, []int64{0, 80, 100}},                 // 80 % of 6 are 5
		{"100/1h cost 7", []int64{11, 1, 1, 1}, []int64{0, 80, 0, 100}}, // 2 units are left
		{"100/1h cost 7", []int64{14}, []int64{100}},
		{"100/1h cost 50", []int64{1, 1}, []int64{0, 100}},
		{"9/1h cost 2", []int64{1, 1, 1, 1}, []int64{0, 0, 0, 100}}, // 8 units are 80 %, too
		{"9/1h cost 4", []int64{1, 1}, []int64{0, 100}},
		{"3/1h cost 2", []int64{1}, []int64{100}}, // 2 units are below 80 %, and no more can be used
		{"1000000/1d", []int64{799_999, 1, 199_999, 1}, []int64{0, 80, 0, 100}},
		{"lockout 5/10m for 1m", []int64{1, 1, 1, 1, 1}, []int64{0, 0, 0, 0, 100}}, // only its limit
	} {
		var s State
		var got []int64
		p := Must(tt.text)
		for _, n := range tt.count {
			s = take(t, p, start, n, s)
			got = append(got, p.Cross(start, n, s, p.Read(start, 0, s)).Crossed)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, %v at a time (-want +got):\n%s", tt.text, tt.count, diff)
		}
	}
}

// Each limit has its own share. The whole has the share of the limit whose figures it
// shows.
func TestEachOfSeveralLimitsIsCrossedByItself(t *testing.T) {
	for _, tt := range []struct {
		text  string
		count []int64
		want  []string
	}{
		{"minute: 5/1m, hour: 10/1h", []int64{3, 1, 1}, []string{"minute 0: 0 0", "minute 80: 80 0", "minute 100: 100 0"}},
		{"hour: 5/1h, minute: 5/1m", []int64{4, 1}, []string{"hour 80: 80 80", "hour 100: 100 100"}},
		{"minute: 10/1m, hour: 9/1h", []int64{7, 1, 1}, []string{"hour 0: 0 0", "hour 80: 80 80", "hour 100: 0 100"}},
		{"minute: 8/1m, slow: bucket 5/1m", []int64{4, 1}, []string{"slow 0: 0 0", "slow 0: 0 0"}},
		{"minute: 5/1m, slow: bucket 5/1m burst 9", []int64{4}, []string{"minute 80: 80 0"}},
		{"log: log 5/1m, minute: 5/1m", []int64{4, 1}, []string{"log 0: 0 80", "log 0: 0 100"}},
	} {
		var s State
		p := Must(tt.text)
		for i, n := range tt.count {
			s = take(t, p, start, n, s)
			r := p.Cross(start, n, s, p.Read(start, 0, s))
			if got := fmt.Sprintf("%s %d: %d %d", r.Name, r.Crossed, r.Each[0].Crossed, r.Each[1].Crossed); got != tt.want[i] {
				t.Errorf("%s, %d more: crossed is %s, want %s", tt.text, n, got, tt.want[i])
			}
		}
	}
}

// In a group, actions of different costs use up one limit. It is used up if the cheapest one
// does not fit any more, also by the check of a dearer one. A live limit has the code's costs.
func TestTheCheapestActionOfAGroupUsesUpALimit(t *testing.T) {
	dear, cheap, other := Must("posts: 99/1h, writes: 100/1h cost 7"), Must("writes: 100/1h cost 3"), Must("likes: 10/1h")
	all := []Policy{dear, cheap, other}
	live, err := Must("posts: 99/1h, writes: 200/1h").WithDefaults(dear.Beside(all...))
	testkit.OK(t, err)
	for _, tt := range []struct {
		p     Policy
		units int64 // used before
		n     int64
		want  int64
	}{
		{dear, 80, 2, 0},   // 6 are left, which two of the cheap ones fit
		{dear, 90, 1, 0},   // exactly one of the cheap ones
		{dear, 91, 1, 100}, // 2 are left
		{dear, 93, 1, 100},
		{cheap, 94, 1, 0},
		{cheap, 95, 1, 100},
		{cheap, 77, 1, 80},
		{cheap, 77, 7, 100},
		{live, 190, 1, 0},
		{live, 191, 1, 100},
	} {
		p := tt.p
		if tt.p.Part("writes") != "200/1h cost 7" {
			p = p.Beside(all...)
		}
		s := take(t, p, start, tt.n, policytest.Values{"writes_s": start*1_000_000 + tt.units}.State())
		r := p.Cross(start, tt.n, s, p.Read(start, 0, s))
		if got := r.Each[len(r.Each)-1]; got.Name != "writes" || got.Crossed != tt.want {
			t.Errorf("%v: %d more after %d units crossed %d of %s, want %d", tt.p, tt.n, tt.units, got.Crossed, got.Name, tt.want)
		}
	}
	if alone := Must("writes: 100/1h cost 7"); alone.Cross(start, 1, policytest.Values{"writes_s": start*1_000_000 + 97}.State(), alone.Read(start, 0, policytest.Values{"writes_s": start*1_000_000 + 97}.State())).Crossed != 100 {
		t.Error("a limit by itself is used up if its own action does not fit")
	}
}

func TestOnlyAFixedWindowAndALockoutAreCrossed(t *testing.T) {
	for _, k := range Kinds() {
		for _, text := range k.Examples {
			p := Must(text)
			for used := range p.Max() {
				var s State
				if used > 0 {
					s = take(t, p, start, used, s)
				}
				u, ok := p.Take(start, p.Max()-used, 1, s)
				if !ok {
					continue // a reservoir takes one action at a time
				}
				got := p.Cross(start, p.Max()-used, u.Apply(s), p.Read(start, 0, u.Apply(s))).Crossed
				want := map[string]int64{"fixed": 100, "lockout": 100}[k.Name]
				if got != want {
					t.Fatalf("%s: after %d of %d, the rest has crossed %d, want %d", text, used, p.Max(), got, want)
				}
			}
		}
	}
}
