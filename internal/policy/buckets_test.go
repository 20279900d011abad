package policy_test

import (
	"testing"
	"time"
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
