package policy_test

import (
	"math"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
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
	t.Run("12 h to 5 s", func(t *testing.T) {
		timeline(t, "bucket 1/12h", []moment{
			{at: 0, take: 1, want: "ok 1/1"},
			{at: 2 * time.Second, take: 1, now: "bucket 1/5s", want: "no 1/1 wait 3s"},
			{at: 5 * time.Second, take: 1, want: "ok 1/1"},
			{at: 9999 * time.Millisecond, take: 1, want: "no 1/1 wait 1ms"},
			{at: 10 * time.Second, take: 1, want: "ok 1/1"},
		})
	})
	t.Run("5 s to 12 h", func(t *testing.T) {
		timeline(t, "bucket 1/5s", []moment{
			{at: 0, take: 1, want: "ok 1/1"},
			{at: 2 * time.Second, take: 1, now: "bucket 1/12h", want: "no 1/1 wait 3s"}, // the old interval would let it pass then, too
			{at: 5 * time.Second, take: 1, want: "ok 1/1"},
			{at: 5001 * time.Millisecond, take: 1, want: "no 1/1 wait 11h59m59.999s"},
		})
	})
	t.Run("12 h to 5 s and back", func(t *testing.T) {
		timeline(t, "bucket 1/12h burst 3", []moment{
			{at: 0, take: 2, want: "ok 2/3"},
			{at: 2 * time.Second, take: 1, now: "bucket 1/5s burst 3", want: "ok 3/3"},
			{at: 3 * time.Second, take: 1, now: "bucket 1/12h burst 3", want: "no 3/3 wait 12s"},
			{at: 7 * time.Second, take: 1, now: "bucket 1/5s burst 3", want: "ok 3/3"},
			{at: 7 * time.Second, take: 1, now: "bucket 1/12h burst 3", want: "no 3/3 wait 13s"},
		})
	})
	t.Run("7 s to 3 s, rounded up", func(t *testing.T) {
		timeline(t, "bucket 1/7s burst 2", []moment{
			{at: 0, take: 1, want: "ok 1/2"},
			{at: time.Second, take: 1, want: "ok 2/2"}, // 13 s until it is full are 5571.4 ms at the new pace
			{at: time.Second, take: 1, now: "bucket 1/3s burst 2", want: "no 2/2 wait 2.572s"},
			{at: 3571 * time.Millisecond, take: 1, want: "no 2/2 wait 1ms"},
			{at: 3572 * time.Millisecond, take: 1, want: "ok 2/2"},
		})
	})
	t.Run("a burst of 15 to 3", func(t *testing.T) {
		timeline(t, "bucket 10/1m burst 15", []moment{
			{at: 0, take: 15, want: "ok 15/15"},
			{at: 6 * time.Second, take: 1, now: "bucket 10/1m burst 3", want: "no 14/3 wait 1m12s"},
			{at: 78 * time.Second, take: 1, want: "ok 3/3"},
		})
	})
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
					s := State{"tat": tat, "asof": asof, "every": every, "since": asof}
					u, ok := p.Take(start, 1, 1, s)
					r := p.Read(start, 1, s)
					if ok && !u.Holds(s) {
						t.Errorf("%s: the update in %v does not hold there: %+v", text, s, u)
					}
					if r.Wait < 0 || r.Remaining < 0 || r.ResetAt < start {
						t.Errorf("%s reads %v as %+v", text, s, r)
					}
					p.Undo(start, start-1, 1, s)
				}
			}
		}
	}
}
