package policy_test

import (
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
)

// plan returns the update that takes one action, and the state after it.
func plan(t *testing.T, p Policy, at time.Duration, s State) (Update, State) {
	t.Helper()
	u, ok := p.Take(start+at.Milliseconds(), 1, 1, s)
	if !ok || !u.Holds(s) {
		t.Fatalf("%v: at %v one action does not fit in %v: %+v", p, at, s, u)
	}
	return u, u.Apply(s)
}

// Two actions are used, so one more is planned as an action on a busy bucket.
// Meanwhile one of the two is given back, and the bucket is full: an action now
// has to start it again.
func TestAPlanForABusyBucketFailsOnAFullOne(t *testing.T) {
	p := Must("bucket 1/1s burst 3")
	_, s := plan(t, p, 0, nil)
	_, s = plan(t, p, 0, s)
	planned, _ := plan(t, p, time.Second, s)
	back, ok := p.Undo(start+1000, start, 1, s)
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
	_, s := plan(t, p, 0, nil)
	for _, at := range []time.Duration{0, 4 * time.Second} {
		planned, _ := plan(t, p, at, s)
		_, ahead := plan(t, p, 6*time.Second, s)
		if planned.Holds(ahead) {
			t.Errorf("the plan %+v of %v holds in %v, where the bucket counts from 6s", planned, at, ahead)
		}
		if r := p.Read(start+5000, 0, ahead); r.At != start+6000 {
			t.Errorf("the receipt is %d, want the time of the clock ahead, %d", r.At, start+6000)
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
		{"bucket 1/5s", "bucket 1/12h", 2 * time.Second, 5 * time.Second, 12 * time.Hour, 1}, // the earlier one
		{"bucket 1/366d", "bucket 1/5s", 2 * time.Second, 5 * time.Second, 5 * time.Second, 1},
		{"bucket 1/12h", "bucket 1/5s", 2 * time.Second, 5 * time.Second, 5 * time.Second, 1},
		{"bucket 1/5s", "bucket 1/12h", 5 * time.Second, 5 * time.Second, 12 * time.Hour, 0}, // full at that moment
		{"bucket 1/5s", "bucket 1/5s", 9 * time.Second, 9 * time.Second, 5 * time.Second, 0},
	} {
		_, s := plan(t, Must(tt.counted), 0, nil)
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
		s := State{"tat": start + 5000, "asof": start, "since": start, "every": every}
		if r := Must("bucket 1/5s").Read(start+2000, 1, s); r.Used != 1 || r.Wait != 3*time.Second {
			t.Errorf("with the interval %d it reads %+v, want 1 used and a wait of 3s", every, r)
		}
	}
}
