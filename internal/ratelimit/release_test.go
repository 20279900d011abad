package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// After 7 s, one limit can give back nothing, because its bucket is full
// again. The other limit still gets its action back.
func TestSeveralLimitsReleaseWhatStillCounts(t *testing.T) {
	for _, text := range []string{"pace: bucket 1/5s, day: 200/1d", "day: 200/1d, pace: bucket 1/5s"} {
		timeline(t, text, []moment{
			{id: "a", want: "ok 1/1"},
			{at: 7 * sec, ask: Release, id: "a", want: "ok 0/1", used: []int64{0, 0}},
			{at: 7 * sec, ask: Release, id: "a", want: "ok 0/1", used: []int64{0, 0}},
		})
	}
}

// A release is bounded, and its arithmetic never overflows.
func TestAReleaseOfTooManyIsRejected(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		store := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
		c := newClock()
		l := &Limiter{Store: store, Now: c.now}
		r := request(s.policy(), "a", 1)
		r.At = mustCheck(t, l, r).At
		sent := store.count()
		for _, n := range []int64{0, 1_000_001, 2_766_994_107_651_000, 1<<63 - 1, -1 << 63} {
			r.Count = n
			if d, err := l.Decide(t.Context(), Release, r); err == nil {
				t.Errorf("Release of %d = %+v, want an error", n, d)
			}
		}
		if store.count() != sent {
			t.Errorf("the store got %d requests, want none", store.count()-sent)
		}
		r.Count = 1_000_000
		if d, err := l.Decide(t.Context(), Release, r); err != nil || d.Used < 0 || d.Remaining > d.Limit || d.Wait < 0 {
			t.Errorf("Release of a million = %+v, %v, want figures in range", d, err)
		}
		d := mustCheck(t, l, request(s.policy(), "b", 1))
		if longest := longest(s.policy()); d.Wait < 0 || d.Wait > longest || d.Used > 2 {
			t.Errorf("the next check: %s, want a wait of at most %v", inWords(d), longest)
		}
	})
}

// releasable are policies of each way to give back: by the ids of a window, by
// the ids of the last 20 s, and by the slots of a log.
var releasable = []string{
	"10/1m", "100/1h", "1000/1h", "sliding 50/1h", "bucket 10/1m", "bucket 1/5s", "log 100/12h",
	"minute: 10/1m, day: 200/1d", "pace: bucket 1/5s, day: 200/1d", "burst: log 5/1m, hour: sliding 50/1h",
}

// onEachReleasable runs a test for each of them and each subject on each store, as a user of its
// own.
func onEachReleasable(t *testing.T, test func(t *testing.T, store Store, r Request)) {
	t.Helper()
	onEachStore(t, func(t *testing.T, store Store) {
		all := slices.Clone(releasable)
		for _, s := range subjects() {
			if !s.policy().Queues() { // a place in a queue is never given back
				all = append(all, s.text)
			}
		}
		slices.Sort(all)
		for _, text := range slices.Compact(all) {
			r := request(policy.Must(text), "r1", 1)
			r.UserID, r.Fallback = text, false
			t.Run(text, func(t *testing.T) { test(t, store, r) })
		}
	})
}

// used asks how many actions are counted. It asks with an id that never counts.
func used(t *testing.T, l *Limiter, r Request) int64 {
	t.Helper()
	r.ID, r.At = "status", 0
	d := mustDo(t, l, Status, r)
	most := d.Used
	for _, each := range d.Each {
		most = max(most, each.Used)
	}
	return most
}

// The same request is released and then counted again. The first receipt gives back nothing
// more for 20 s, and the second one gives back its own action.
func TestAReleaseThatIsDoneGivesBackNothing(t *testing.T) {
	onEachReleasable(t, func(t *testing.T, store Store, r Request) {
		c := newClock()
		l := &Limiter{Store: store, Timeout: 5 * time.Second, Now: c.now}
		check := func(at time.Duration) int64 {
			t.Helper()
			c.at(at)
			d := mustCheck(t, l, r)
			if d.At == 0 {
				t.Fatalf("at %v: %s, want a released id counted again", at, inWords(d))
			}
			return d.At
		}
		release := func(at time.Duration, receipt int64, gives bool) {
			t.Helper()
			c.at(at)
			again, was, before := r, stateOf(t, store, r), used(t, l, r)
			again.At = receipt
			mustDo(t, l, Release, again)
			if gave := stateOf(t, store, r) != was; gave != gives || gives && used(t, l, r) != before-1 {
				t.Fatalf("at %v: a release changes the item: %v, and of %d %d are used, want it: %v", at, gave, before, used(t, l, r), gives)
			}
		}
		first := check(time.Second)
		release(2*time.Second, first, true)
		release(2*time.Second, first, false)
		second := check(3 * time.Second)
		release(3500*time.Millisecond, first, false)
		release(4*time.Second, second, true)
		release(4*time.Second, second, false)
		release(4*time.Second, first, false)
		check(5 * time.Second)
		release(22*time.Second, first, false)
	})
}

// An attempt of a release is on its way for longer than the release takes. It
// arrives after the request was counted again, and changes nothing.
func TestALateReleaseGivesBackNothing(t *testing.T) {
	onEachReleasable(t, func(t *testing.T, store Store, r Request) {
		c := newClock()
		plain := &Limiter{Store: store, Timeout: 5 * time.Second, Now: c.now}
		c.at(time.Second)
		r.At = mustCheck(t, plain, r).At
		var late func() error
		slow := &faulty{Store: store, faults: []fault{
			pass, // the read
			func(_ context.Context, perform func() error) error {
				late = perform
				return errors.New("timeout")
			},
			pass,
		}}
		l := &Limiter{Store: slow, Now: c.now, NewBudget: noPauses(4)}
		c.at(2 * time.Second)
		if _, err := l.Decide(t.Context(), Release, r); err != nil || late == nil {
			t.Fatalf("Release: %v", err)
		}
		if got := used(t, plain, r); got != 0 {
			t.Fatalf("%d used after the release, want 0", got)
		}
		c.at(3 * time.Second)
		again := r
		again.At = 0
		again.At = mustCheck(t, plain, again).At
		c.at(4 * time.Second)
		testkit.OK(t, late())
		if got := used(t, plain, r); got != 1 {
			t.Fatalf("%d used after the late release, want 1", got)
		}
		if _, err := plain.Decide(t.Context(), Release, again); err != nil || used(t, plain, r) != 0 {
			t.Errorf("the second receipt: %v, %d used, want 0", err, used(t, plain, r))
		}
	})
}

// A release by the request's id is in time for exactly 20 s, but at most as long
// as its window. In a window with a limit of up to 100 it is in time until the
// window ends, and in a log until the action no longer counts.
func TestWhenAReleaseIsTooLate(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for text, last := range map[string]time.Duration{
			"100/1m": 59_999 * time.Millisecond, "10/1m": 59_999 * time.Millisecond,
			"101/1m": 20 * time.Second, "1000/1h": 20 * time.Second, "101/10s": 9_999 * time.Millisecond,
			"sliding 50/1h": 20 * time.Second, "bucket 10/1h": 20 * time.Second,
			"minute: 10/1m, day: 200/1d": 20 * time.Second, "burst: log 5/1h, day: 200/1d": time.Hour - time.Millisecond, // after 20 s it gives back in the log alone

			"log 100/12h": 12*time.Hour - time.Millisecond,
		} {
			for _, tt := range []struct {
				after time.Duration
				gives bool
			}{{last, true}, {last + time.Millisecond, false}} {
				c := newClock()
				l := &Limiter{Store: store, Timeout: 5 * time.Second, Now: c.now}
				r := request(policy.Must(text), "a", 2)
				r.UserID = text + tt.after.String()
				r.At = mustCheck(t, l, r).At
				was := stateOf(t, store, r)
				c.at(tt.after)
				mustDo(t, l, Release, r)
				if gave := stateOf(t, store, r) != was; gave != tt.gives {
					t.Errorf("%s: after %v a release changes the item: %v, want %v", text, tt.after, gave, tt.gives)
				}
			}
		}
	})
}

// stateOf returns the item that counted r, as text.
func stateOf(t *testing.T, store Store, r Request) string {
	t.Helper()
	n, _ := r.Policy.Item(start.UnixMilli())
	item, err := store.Read(t.Context(), Key{UserID: r.UserID, Activity: r.Activity, Window: n})
	testkit.OK(t, err)
	return fmt.Sprint(item.State)
}

// What a release gives back, and that it does so once.
func TestReleaseTimelines(t *testing.T) {
	stories(t, []story{
		{"a release gives back once", "3/1m", []moment{
			{at: sec, id: "a", count: 3, want: "ok 3/3"},
			{at: sec, id: "b", want: "limited 3/3, wait 59s"},
			{at: sec, ask: Release, id: "a", count: 2, want: "ok 1/3"},
			{at: sec, ask: Release, id: "a", count: 2, want: "ok 1/3"},
			{at: sec, id: "c", want: "ok 2/3"},                                                          // this instance refused a moment ago, and no longer does
			{at: sec + time.Millisecond, id: "a", want: "ok 3/3"},                                       // a released id is new
			{at: sec + time.Millisecond, ask: Release, id: "a", count: 2, receipt: sec, want: "ok 3/3"}, // a late copy of the first release
			{at: 0, ask: Release, id: "a", count: 2, want: "ok 1/3"},                                    // a clock behind; the new action, and one more
			{at: 0, ask: Release, id: "a", count: 2, want: "ok 1/3"},
			{at: time.Minute, ask: Release, id: "c", want: "ok 0/3"}, // too late: the window has passed
			{at: 59 * sec, ask: Status, id: "s", want: "ok 1/3"},
			{at: 59 * sec, ask: Release, id: "c", want: "ok 0/3"},
		}},
		// A receipt may come from an instance whose clock is a little ahead, and no more.
		{"a receipt from a clock ahead", "3/1m", []moment{
			{at: 61 * sec, id: "a", count: 2, want: "ok 2/3"},
			{at: 59 * sec, ask: Release, id: "a", count: 2, receipt: time.UnixMilli(policy.Latest).Sub(start), want: "ok 0/3"}, // of this window
			{at: 61 * sec, ask: Status, id: "s", want: "ok 2/3"},
			{at: 59 * sec, ask: Release, id: "a", count: 2, want: "ok 0/3"},
			{at: 61 * sec, ask: Status, id: "s", want: "ok 0/3"},
		}},
		// A receipt of the next window gives back nothing in this one, however far ahead it is.
		{"a receipt of a later window", "9/1m", []moment{
			{at: 15 * sec, id: "r", want: "ok 1/9"},
			{at: 20 * sec, ask: Release, id: "r", receipt: 65 * sec, want: "ok 0/9"},  // the figures belong to that window
			{at: 20 * sec, ask: Release, id: "r", receipt: 195 * sec, want: "ok 1/9"}, // no clock is that far ahead
			{at: 20 * sec, ask: Status, id: "s", want: "ok 1/9"},
		}},
		// A check is counted in a window of up to 100, and the limit is raised. The
		// release counts until the window ends.
		{"a release after the limit was raised", "100/12h", []moment{
			{id: "r1", want: "ok 1/100"},
			{at: 30 * sec, by: "cold", ask: Release, id: "r1", limit: "200/12h", want: "ok 0/200"},
		}},
		// A bucket that is not full for longer than a window gives a receipt that is
		// ahead of the clock. It never gives back actions of another window.
		{"a release of several limits keeps to its window", "minute: 10/1m, pace: bucket 10/10m", []moment{
			{at: 57 * sec, by: "ahead", id: "first", want: "ok 1/10"},
			{at: 57 * sec, id: "r", count: 2, want: "ok 3/10"},
			{at: time.Minute, by: "ahead", id: "next window", count: 3, want: "ok 6/10"},
			{at: time.Minute, ask: Release, id: "r", count: 2, want: "ok 4/10", used: []int64{3, 4}}, // the 3 of this minute
		}},
		// A clock that is 2 s ahead is in the next period already, and counts a request
		// there. The instance that is behind has just seen an item without room for it.
		// It does not refuse a repeat of the request from memory.
		{"a repeat of what a clock ahead counted is a duplicate", "sliding 2/10s", []moment{
			{at: 9 * sec, id: "first", want: "ok 1/2"},
			{at: 9 * sec, by: "ahead", id: "r", count: 2, want: "ok 2/2"},
			{at: 9 * sec, id: "r", count: 2, want: "duplicate 3/2", granted: 2},
		}},
		// A log gives back a part of a check once. A repeat after 20 to 60 s can give back
		// another action of the same millisecond.
		{"a log gives back a part once", "log 5/12h", []moment{
			{at: 0, id: "a", count: 3, want: "ok 3/5"},
			{at: sec, ask: Release, id: "a", want: "ok 2/5"},
			{at: 2 * sec, ask: Release, id: "a", want: "ok 2/5"},
			{at: 19 * sec, ask: Release, id: "a", want: "ok 2/5"},
			{at: 61 * sec, ask: Release, id: "a", want: "ok 1/5"},
			{at: 62 * sec, ask: Release, id: "a", want: "ok 1/5"},
		}},
		// A log gives nothing back for an id that it should still remember and does not.
		{"a log gives nothing back for an unknown ID", "log 5/12h", []moment{
			{at: sec, id: "a", count: 2, want: "ok 2/5"},
			{at: 18 * sec, by: "cold", ask: Release, id: "unknown", receipt: sec, want: "ok 2/5"},
		}},
		// Another instance gives back a check and counts it again, in the next window of one of
		// its limits and in one generation of ids. An instance that has seen only the first count
		// gives back the second one in each limit.
		{"a release of what was counted again elsewhere", "a: 5/10s, b: sliding 9/20s", []moment{
			{at: 9 * sec, id: "r1", count: 2, want: "ok 2/5"},
			{at: 9 * sec, by: "cold", ask: Release, id: "r1", count: 2, want: "ok 0/5"},
			{at: 11 * sec, by: "cold", id: "r1", count: 2, want: "ok 2/5"},
			{at: 11 * sec, ask: Release, id: "r1", count: 2, want: "ok 0/5", used: []int64{0, 0}},
		}},
		// The note beside the id is a place and not the time of a renewal. A release gives back what
		// counts beside the queue, and the place is lost.
		{"a release beside a reservoir", "jobs: reservoir 2/10s ahead 1m, day: 90/1d", []moment{
			{at: sec, by: "cold", id: "a", want: "ok 1/2", used: []int64{1, 1}},
			{at: 2 * sec, by: "cold", ask: Release, id: "a", want: "ok 1/2", used: []int64{1, 0}},
		}},
	})
}
