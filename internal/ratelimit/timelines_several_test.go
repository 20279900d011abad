package ratelimit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
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
		{at: 59 * time.Second, id: "d", want: "limited 0/3, wait 1s for the minute"}, // the clock stepped back
		{at: 59 * time.Second, ask: Status, id: "d", want: "limited 0/3, wait 1s for the minute"},
		{at: time.Minute, id: "d", want: "ok 4/5"},
		{at: 119 * time.Second, id: "e", want: "ok 5/5"},
		{at: 120 * time.Second, ask: Release, id: "e", want: "ok 4/5"}, // of the hour only, because its minute has passed
		{at: 120 * time.Second, ask: Release, id: "e", want: "ok 4/5"},
		{at: 121 * time.Second, ask: Release, id: "a", want: "ok 4/5"}, // too late
		{at: hour, id: "e", count: 3, want: "ok 3/3"},
	})
}

// A release takes nothing from a window in which its check did not count.
func TestSeveralLimitsReleaseAcrossAWindow(t *testing.T) {
	timeline(t, "minute: 3/1m, hour: 9/1h", []moment{
		{at: 59 * time.Second, id: "a", count: 2, want: "ok 2/3"},
		{at: 60 * time.Second, id: "b", count: 2, want: "ok 2/3"},
		{at: 61 * time.Second, ask: Release, id: "a", count: 2, want: "ok 2/3"},
		{at: 61 * time.Second, id: "c", count: 2, want: "limited 2/3, wait 59s for the minute"},
	})
}

// The state belongs to a limit's name and not to its position.
func TestTheOrderOfSeveralLimitsMeansNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		c := newClock()
		l := &Limiter{Store: store, Timeout: 5 * time.Second, Now: c.now}
		orders := []policy.Policy{policy.Must("minute: 3/1m, day: 5/1d"), policy.Must("day: 5/1d, minute: 3/1m")}
		for i, step := range []struct {
			at   time.Duration
			want string
		}{
			{0, "ok 1/3"},
			{0, "ok 2/3"},
			{0, "ok 3/3"},
			{0, "limited 3/3, wait 1m0s for the minute"},
			{time.Minute, "ok 4/5"},
			{time.Minute, "ok 5/5"},
		} {
			c.at(step.at)
			d := mustCheck(t, l, request(orders[i%2], string(rune('a'+i)), 1))
			if got := inWords(d); got != step.want {
				t.Errorf("check %d as %v: %s, want %s", i, orders[i%2], got, step.want)
			}
		}
		for _, p := range orders {
			if d := mustCheck(t, l, request(p, "last", 1)); d.Allowed || d.LimitedBy != "day" || d.Wait <= 0 {
				t.Errorf("the last check as %v: %s, want it refused by the day with a wait", p, inWords(d))
			}
		}
	})
}

// A decision on several limits contains the figures of each.
func TestEachOfSeveralLimits(t *testing.T) {
	l := &Limiter{Store: new(memstore.Store), Now: newClock().now}
	d := mustCheck(t, l, request(policy.Must("minute: 10/1m, day: 200/1d"), "a", 4))
	day := start.Truncate(24 * time.Hour).Add(24 * time.Hour).UnixMilli()
	at := start.UnixMilli()
	want := []policy.Reading{
		{Name: "minute", Limit: 10, Window: time.Minute, Used: 4, Remaining: 6, ResetAt: at + 60_000, At: at},
		{Name: "day", Limit: 200, Window: 24 * time.Hour, Used: 4, Remaining: 196, ResetAt: day, At: at},
	}
	if diff := cmp.Diff(want, d.Each); diff != "" {
		t.Errorf("each limit (-want +got):\n%s", diff)
	}
}
