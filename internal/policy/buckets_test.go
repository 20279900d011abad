package policy_test

import (
	"math"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
)

func TestBucketTimeline(t *testing.T) {
	timeline(t, "bucket 1/5s burst 3", []moment{
		{at: 0, take: 3, want: "ok 3/3"},
		{at: 4999 * time.Millisecond, take: 1, want: "no 3/3 wait 1ms"},
		{at: 5 * time.Second, take: 1, want: "ok 3/3"},
		{at: 4 * time.Second, take: 1, want: "no 4/3 wait 6s"}, // the clock stepped back
		{at: 6 * time.Second, undo: 1, of: 5 * time.Second, want: "ok 2/3"},
		{at: 6 * time.Second, undo: 4, of: 5 * time.Second, want: "no 2/3"},
		{at: 15 * time.Second, take: 3, want: "ok 3/3"},                      // full again
		{at: 16 * time.Second, undo: 1, of: 5 * time.Second, want: "no 3/3"}, // taken before it was full
		{at: time.Hour, want: "is 0/3"},
	})
}

// A burst of 1 is a minimum time between two actions.
func TestIntervalTimeline(t *testing.T) {
	timeline(t, "bucket 1/5s", []moment{
		{at: 0, take: 1, want: "ok 1/1"},
		{at: 3 * time.Second, take: 1, want: "no 1/1 wait 2s"},
		{at: 5 * time.Second, take: 1, want: "ok 1/1"},
		{at: 5100 * time.Millisecond, undo: 1, of: 0, want: "no 1/1"}, // it would let two come closer
		{at: 5200 * time.Millisecond, undo: 1, of: 5 * time.Second, want: "ok 0/1"},
		{at: 5300 * time.Millisecond, take: 1, want: "ok 1/1"},
	})
}

// The interval changes, as by a live limit. What is used then comes back at the
// new pace, counted from when it was used.
func TestABucketAtAnotherIntervalTimeline(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		moments    []moment
	}{
		{"12 h to 5 s", "bucket 1/12h", []moment{
			{at: 0, take: 1, want: "ok 1/1"},
			{at: 2 * time.Second, take: 1, now: "bucket 1/5s", want: "no 1/1 wait 3s"},
			{at: 5 * time.Second, take: 1, want: "ok 1/1"},
			{at: 9999 * time.Millisecond, take: 1, want: "no 1/1 wait 1ms"},
			{at: 10 * time.Second, take: 1, want: "ok 1/1"},
		}},
		{"5 s to 12 h", "bucket 1/5s", []moment{
			{at: 0, take: 1, want: "ok 1/1"},
			{at: 2 * time.Second, now: "bucket 1/12h", want: "is 1/1"},                       // 3/5 of it
			{at: 2 * time.Second, take: 1, now: "bucket 1/12h", want: "no 1/1 wait 7h12m0s"}, // they come back at the new pace
			{at: 5 * time.Second, take: 1, want: "no 1/1 wait 7h11m57s"},                     // so the old one does not end this
			{at: 7*time.Hour + 12*time.Minute + 2*time.Second - 1e6, take: 1, want: "no 1/1 wait 1ms"},
			{at: 7*time.Hour + 12*time.Minute + 2*time.Second, take: 1, want: "ok 1/1"},
		}},
		{"12 h to 5 s and back", "bucket 1/12h burst 3", []moment{
			{at: 0, take: 2, want: "ok 2/3"},
			{at: 2 * time.Second, take: 1, now: "bucket 1/5s burst 3", want: "ok 3/3"},
			{at: 3 * time.Second, take: 1, now: "bucket 1/12h burst 3", want: "no 3/3 wait 4h48m0s"}, // 2.4 are in use
			{at: 7 * time.Second, take: 1, now: "bucket 1/5s burst 3", want: "ok 3/3"},
			{at: 7 * time.Second, take: 1, now: "bucket 1/12h burst 3", want: "no 3/3 wait 7h12m0s"}, // 2.6
		}},
		{"a burst, 6 s to 8640 s", "bucket 10/1m", []moment{
			{at: 0, take: 10, want: "ok 10/10"},
			{at: time.Second, take: 1, now: "bucket 10/1d", want: "no 10/10 wait 2h0m0s"}, // 59/6 are in use
			{at: time.Minute, take: 10, want: "no 10/10 wait 23h35m1s"},
			{at: 2*time.Hour + time.Second, take: 1, want: "ok 10/10"},
		}},
		{"a burst, 6 s to 8640 s, after some came back", "bucket 10/1m", []moment{
			{at: 0, take: 10, want: "ok 10/10"},
			{at: 30 * time.Second, take: 5, now: "bucket 10/1d", want: "ok 10/10"}, // 5 came back before
			{at: time.Minute, take: 1, want: "no 10/10 wait 2h23m30s"},
		}},
		{"a burst, 6 s to 8640 s, when it was full", "bucket 10/1m", []moment{
			{at: 0, take: 10, want: "ok 10/10"},
			{at: time.Minute, take: 10, now: "bucket 10/1d", want: "ok 10/10"}, // it was full before its first decision
			{at: time.Minute, take: 1, want: "no 10/10 wait 2h24m0s"},
		}},
		{"a burst of 15 to 3, and 6 s to 60 s", "bucket 10/1m burst 15", []moment{
			{at: 0, take: 15, want: "ok 15/15"},
			{at: 6 * time.Second, take: 1, now: "bucket 1/1m burst 3", want: "no 14/3 wait 12m0s"},
			{at: 90 * time.Second, take: 1, want: "no 13/3 wait 10m36s"},
		}},
		{"7 s to 3 s, rounded up", "bucket 1/7s burst 2", []moment{
			{at: 0, take: 1, want: "ok 1/2"},
			{at: time.Second, take: 1, want: "ok 2/2"}, // 13 s until it is full are 5571.4 ms at the new pace
			{at: time.Second, take: 1, now: "bucket 1/3s burst 2", want: "no 2/2 wait 2.572s"},
			{at: 3571 * time.Millisecond, take: 1, want: "no 2/2 wait 1ms"},
			{at: 3572 * time.Millisecond, take: 1, want: "ok 2/2"},
		}},
		{"a burst of 15 to 3", "bucket 10/1m burst 15", []moment{
			{at: 0, take: 15, want: "ok 15/15"},
			{at: 6 * time.Second, take: 1, now: "bucket 10/1m burst 3", want: "no 14/3 wait 1m12s"},
			{at: 78 * time.Second, take: 1, want: "ok 3/3"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { timeline(t, tt.text, tt.moments) })
	}
}

// Two actions are used, so one more is planned as an action on a busy bucket.
// Meanwhile one of the two is given back, and the bucket is full: an action now
// has to start it again.
func TestAPlanForABusyBucketFailsOnAFullOne(t *testing.T) {
	p := Must("bucket 1/1s burst 3")
	s := take(t, p, start, 1, take(t, p, start, 1, nil))
	planned, ok := p.Take(start+1000, 1, 1, s)
	if !ok || !planned.Holds(s) {
		t.Fatalf("one more does not fit in %v: %+v", s, planned)
	}
	back, ok := p.Undo(start+1000, start, start, 1, s)
	if !ok {
		t.Fatalf("one action cannot be given back in %v", s)
	}
	if full := back.Apply(s); planned.Holds(full) {
		t.Errorf("the plan %+v holds in %v, where the bucket is full", planned, full)
	}
}

// All limits count an action at the same time. A clock that is 2 s ahead starts
// the bucket again, after another clock has planned an action at its own time.
func TestAPlanFailsIfAClockAheadHasStartedTheBucketAgain(t *testing.T) {
	p := Must("pace: bucket 1/5s burst 4, all: 9/1h")
	s := take(t, p, start, 1, nil)
	for _, at := range []time.Duration{0, 4 * time.Second} {
		planned, ok := p.Take(start+at.Milliseconds(), 1, 1, s)
		if !ok || !planned.Holds(s) {
			t.Fatalf("at %v one action does not fit in %v: %+v", at, s, planned)
		}
		ahead := take(t, p, start+6000, 1, s)
		if planned.Holds(ahead) {
			t.Errorf("the plan %+v of %v holds in %v, where the bucket counts from 6s", planned, at, ahead)
		}
		if at := p.CountedAt(start+5000, ahead); at != start+6000 {
			t.Errorf("the next action counts at %d, want the time of the clock ahead, %d", at, start+6000)
		}
	}
}

// By the new interval the bucket was full, so it starts again, and the actions
// before that cannot be given back any more. While it was not full, they can.
func TestABucketThatIsFullAtANewIntervalStartsAgain(t *testing.T) {
	for _, at := range []time.Duration{5 * time.Second, 6 * time.Second} {
		timeline(t, "bucket 1/12h burst 3", []moment{
			{at: 0, take: 1, want: "ok 1/3"},
			{at: at, take: 1, now: "bucket 1/5s burst 3", want: "ok 1/3"},
			{at: at, undo: 1, of: 0, want: "no 1/3"},
			{at: at, undo: 1, of: at, want: "ok 0/3"},
		})
	}
	timeline(t, "bucket 1/12h burst 3", []moment{
		{at: 0, take: 1, want: "ok 1/3"},
		{at: 4 * time.Second, take: 1, now: "bucket 1/5s burst 3", want: "ok 2/3"},
		{at: 4 * time.Second, undo: 1, of: 0, want: "ok 1/3"},
	})
}

func TestWhenABucketIsFullAgain(t *testing.T) {
	for _, tt := range []struct {
		counted, read string
		at, full      time.Duration // after one action at start
		window        time.Duration
		used          int64
	}{
		{"bucket 1/5s", "bucket 1/5s", 2 * time.Second, 5 * time.Second, 5 * time.Second, 1},
		{"bucket 10/1m burst 15", "bucket 10/1m burst 15", time.Second, 6 * time.Second, 90 * time.Second, 1},
		{"bucket 1/5s", "bucket 1/12h", 2 * time.Second, 2*time.Second + 6*12*time.Hour/10, 12 * time.Hour, 1}, // 3/5 are in use
		{"bucket 1/366d", "bucket 1/5s", 2 * time.Second, 5 * time.Second, 5 * time.Second, 1},
		{"bucket 1/12h", "bucket 1/5s", 2 * time.Second, 5 * time.Second, 5 * time.Second, 1},
		{"bucket 1/5s", "bucket 1/12h", 5 * time.Second, 5 * time.Second, 12 * time.Hour, 0}, // full at that moment
		{"bucket 1/5s", "bucket 1/5s", 9 * time.Second, 9 * time.Second, 5 * time.Second, 0},
	} {
		s := take(t, Must(tt.counted), start, 1, nil)
		r := Must(tt.read).Read(start+tt.at.Milliseconds(), 0, s)
		if r.ResetAt != start+tt.full.Milliseconds() || r.Window != tt.window || r.Used != tt.used {
			t.Errorf("%s counts one action, and %s reads it at %v as %+v; want it full at %v, %d used, and the window %v",
				tt.counted, tt.read, tt.at, r, tt.full, tt.used, tt.window)
		}
	}
}

// An item that has no interval, or none in the valid range, reads as if it were
// counted with the policy's own.
func TestABucketWithoutAnIntervalIsReadWithItsOwn(t *testing.T) {
	const longest = 366 * 24 * 3_600_000
	for _, every := range []int64{-1, 0, longest + 1} {
		s := policytest.Values{"tat": start + 5000, "asof": start, "since": start, "every": every}.State()
		if r := Must("bucket 1/5s").Read(start+2000, 1, s); r.Used != 1 || r.Wait != 3*time.Second {
			t.Errorf("with the interval %d it reads %+v, want 1 used and a wait of 3s", every, r)
		}
	}
}

// With every attribute at an extreme, a bucket either refuses or plans an
// update that holds, or the limiter sees at once that it does not hold.
func TestABucketSurvivesExtremeStates(t *testing.T) {
	extremes := []int64{math.MinInt64, math.MinInt64 / 2, -1, 0, 1, start, math.MaxInt64 / 2, math.MaxInt64}
	for _, text := range []string{"bucket 1/5s", "bucket 1/366d", "bucket 1000000/3000000ms", "bucket 1/31622s burst 1000"} {
		p := Must(text)
		for _, tat := range extremes {
			for _, asof := range extremes {
				for _, every := range extremes {
					s := policytest.Values{"tat": tat, "asof": asof, "every": every, "since": asof}.State()
					u, ok := p.Take(start, 1, 1, s)
					r := p.Read(start, 1, s)
					if ok && !u.Holds(s) {
						t.Errorf("%s: the update in %v does not hold there: %+v", text, s, u)
					}
					if r.Wait < 0 || r.Remaining < 0 || r.ResetAt < start {
						t.Errorf("%s reads %v as %+v", text, s, r)
					}
					p.Undo(start, start-1, start-1, 1, s)
				}
			}
		}
	}
}
