package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A receipt that is held works for 15 minutes, once, while others come with and
// without a hold. A cold instance settles it.
func TestAHeldReceipt(t *testing.T) {
	for _, text := range []string{"1000/1d", "100000/1h cost 10", "bucket 1000/1d", "sliding 1000/1d", "tokens: 9000/1h, jobs: log 9/1h", "99/1h"} {
		onEachStore(t, func(t *testing.T, store Store) {
			l, c := instance(store)
			held := func(id string, n int64) Request {
				r := request(policy.Must(text), id, n)
				r.Hold = true
				return r
			}
			r := held("r1", 9)
			r.At = mustCheck(t, l, r).At
			c.add(8 * time.Minute)
			if d := mustCheck(t, l, r); d.Reason != Duplicate {
				t.Fatalf("%s: %+v", text, d)
			}
			for i := range 25 {
				c.add(14 * time.Second)
				other := held("o"+strconv.Itoa(i), 1)
				if d := mustCheck(t, l, other); d.Requests > 2 {
					t.Fatalf("%s: %+v", text, d)
				}
			}
			r.Count = 6
			cold := &Limiter{Store: store, Now: c.now}
			c.at(14 * time.Minute)
			state := stateOf(t, store, r)
			before := eachUsed(mustDo(t, cold, Status, held("s", 1)))
			for i := range 5 {
				d := mustDo(t, cold, Release, r)
				for limit, n := range eachUsed(d) {
					if i == 0 && n != before[limit]-6 {
						t.Fatalf("%s: %d used of limit %d, and after a release of 6 %d", text, before[limit], limit, n)
					}
				}
				after := stateOf(t, store, r)
				if changed := after != state; changed != (i == 0) {
					t.Fatalf("%s: release %d changes the item: %v", text, i, changed)
				}
				state = after
				c.add(5 * time.Second)
			}
			r.Count = 1
			if d := mustCheck(t, l, r); d.Reason != OK {
				t.Fatalf("%s: a check with an id that is given back: %+v", text, d)
			}
			r.At = c.now().UnixMilli()
			state = stateOf(t, store, r)
			c.add(21 * time.Minute)
			mustDo(t, l, Release, r)
			if after := stateOf(t, store, r); after != state && text != "99/1h" && text != "tokens: 9000/1h, jobs: log 9/1h" {
				t.Errorf("%s: a release after 21 minutes changes %s to %s", text, state, after)
			}
		})
	}
}

// eachUsed returns the used figure of each limit.
func eachUsed(d Decision) (all []int64) {
	for _, r := range eachOf(d) {
		all = append(all, r.Used)
	}
	return all
}

// A held check is given back, and a check with the same id is counted again. A copy of the
// first release, more than 28 s later, gives back nothing.
func TestACopyOfAHeldRelease(t *testing.T) {
	const checked = time.Second
	for _, text := range []string{"1000/1d", "bucket 1000/1d", "sliding 1000/1d"} {
		timeline(t, text, []moment{
			{at: checked, by: "cold", id: "r1", count: 10, hold: true, want: "ok 10/1000"},
			{at: time.Minute, by: "cold", ask: Release, id: "r1", count: 10, hold: true, want: "ok 0/1000"},
			{at: 70 * time.Second, by: "cold", id: "r1", count: 10, hold: true, want: "ok 10/1000"},
			{at: 130 * time.Second, by: "cold", ask: Release, id: "r1", count: 10, hold: true, receipt: checked, want: "ok 10/1000"},
		})
	}
}

// A late copy of a release finds the id of the first one, even in the set where it
// would drop the id of a later check.
func TestALateCopyOfAReleaseInTheSameSet(t *testing.T) {
	const checked, released = 6 * time.Second, 8 * time.Second // the next generation
	timeline(t, "1000/1m", []moment{
		{at: checked, by: "cold", id: "r1", want: "ok 1/1000"},
		{at: released, by: "cold", ask: Release, id: "r1", want: "ok 0/1000"},
		{at: released, by: "cold", id: "r1", want: "ok 1/1000"},
		{at: released, by: "cold", ask: Release, id: "r1", receipt: checked, want: "ok 1/1000"},
	})
}

// The same with a renewal in between: the release drops the check's id from the next set, and
// keeps its own in the set that a later check uses.
func TestALateCopyOfAReleaseAfterARenewalInTheSameSet(t *testing.T) {
	const checked = 8 * time.Second // a generation lasts from second 7 to second 14
	timeline(t, "now: log 9/10m, day: 90/1d", []moment{
		{at: checked, by: "cold", id: "r1", want: "ok 1/9"},
		{at: 9 * time.Second, by: "cold", ask: Renew, id: "r1", want: "ok 1/9"},
		{at: 10 * time.Second, by: "cold", ask: Release, id: "r1", receipt: checked, want: "ok 0/9"},
		{at: 11 * time.Second, by: "cold", id: "r1", want: "ok 1/9"},
		{at: 12 * time.Second, by: "cold", ask: Release, id: "r1", receipt: checked, want: "ok 1/9", used: []int64{1, 1}},
	})
}

// A write removes no set of ids that can still be looked for: of a check at the end of a
// generation, a repeat comes in the third one after it.
func TestOthersWriteBeforeALateRepeat(t *testing.T) {
	timeline(t, "1000/1m", []moment{
		{at: 6900 * time.Millisecond, by: "cold", id: "r1", want: "ok 1/1000"},
		{at: 22 * time.Second, by: "cold", id: "r2", want: "ok 2/1000"},
		{at: 24 * time.Second, by: "cold", id: "r1", want: "duplicate 2/1000", granted: 1},
	})
}
