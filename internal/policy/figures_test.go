package policy_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
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
	if got := Must("10/1m").Waiting(start, start, Values{"activityCount": 9}.State()); got != 0 {
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
