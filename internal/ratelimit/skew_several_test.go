package ratelimit_test

import (
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// usedOf returns how many actions each limit counts, by its name.
func usedOf(t *testing.T, l *Limiter, r Request) map[string]int64 {
	t.Helper()
	r.ID, r.At = "status", 0
	used := map[string]int64{}
	for _, each := range mustDo(t, l, Status, r).Each {
		used[each.Name] = each.Used
	}
	return used
}

// A clock that is 2 s ahead fills the bucket. A check that comes from the other
// clock gets a receipt that gives back the bucket too.
func TestAReleaseOfSeveralLimitsWithClocksApart(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, text := range []string{
			"minute: 10/1m, pace: bucket 10/1m", "pace: bucket 10/1m, day: sliding 50/1d", "burst: log 9/1h, pace: bucket 10/1m",
		} {
			for _, releaser := range []string{"the clock behind", "the clock ahead"} {
				twoClocks(t, store, 2*time.Second, func(at func(time.Duration), behind, early *Limiter) {
					first, r := request(policy.Must(text), "first", 1), request(policy.Must(text), "r", 2)
					first.UserID, r.UserID = text+releaser, text+releaser
					at(10 * time.Second)
					mustCheck(t, early, first)
					at(10*time.Second + time.Millisecond)
					r.At = mustCheck(t, behind, r).At
					before := usedOf(t, early, r)
					at(10*time.Second + 2*time.Millisecond)
					l := behind
					if releaser == "the clock ahead" {
						l = early
					}
					for range 2 {
						mustDo(t, l, Release, r)
						for name, n := range usedOf(t, early, r) {
							if n != before[name]-2 {
								t.Errorf("%s, released by %s: %d used of the limit %s, want %d", text, releaser, n, name, before[name]-2)
							}
						}
					}
				})
			}
		}
	})
}

// A bucket that is not full for longer than a window gives a receipt that is
// ahead of the clock. It never gives back actions of another window.
func TestAReleaseOfSeveralLimitsKeepsToItsWindow(t *testing.T) {
	const before = 57 * time.Second // 59 s by the clock ahead
	timeline(t, "minute: 10/1m, pace: bucket 10/10m", []moment{
		{at: before, by: "ahead", id: "first", want: "ok 1/10"},
		{at: before, id: "r", count: 2, want: "ok 3/10"},
		{at: time.Minute, by: "ahead", id: "next window", count: 3, want: "ok 6/10"},
		{at: time.Minute, ask: Release, id: "r", count: 2, want: "ok 4/10", used: []int64{3, 4}}, // the 3 of this minute
	})
}
