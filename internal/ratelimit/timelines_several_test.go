package ratelimit_test

import (
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

// hour is how much of its hour is left at start.
const hour = 60*time.Minute - 28_339_094*time.Minute%time.Hour

func TestSeveralLimitsTimeline(t *testing.T) {
	timeline(t, "minute: 3/1m, hour: 5/1h", []moment{
		{at: 0, id: "a", count: 3, want: "ok 3/3"},
		{at: 0, id: "a", count: 3, want: "duplicate 3/3"},
		{at: 0, id: "b", want: "limited 3/3, wait 1m0s for the minute"},
		{at: time.Minute, id: "b", count: 3, want: "limited 3/5, wait " + (hour - time.Minute).String() + " for the hour"},
		{at: time.Minute, id: "b", count: 2, want: "ok 5/5"},
		{at: time.Minute, id: "c", want: "limited 5/5, wait " + (hour - time.Minute).String() + " for the hour"},
		{at: time.Minute, ask: Release, id: "b", count: 2, want: "ok 3/5"},
		{at: time.Minute, ask: Release, id: "b", count: 2, want: "ok 3/5"},
		{at: 59 * time.Second, id: "d", want: "ok 4/5"}, // the clock stepped back, so it counts in the minute that has begun
		{at: time.Minute, id: "d", want: "duplicate 4/5", granted: 1},
		{at: 119 * time.Second, id: "e", want: "ok 5/5"},
		{at: 120 * time.Second, ask: Release, id: "e", want: "ok 4/5"}, // of the hour only, because its minute has passed
		{at: 120 * time.Second, ask: Release, id: "e", want: "ok 4/5"},
		{at: 121 * time.Second, ask: Release, id: "a", want: "ok 4/5"}, // too late
		{at: hour, id: "e", count: 3, want: "ok 3/3"},
	})
}
