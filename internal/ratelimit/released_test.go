package ratelimit_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// releasable are policies of each way to give back: by the ids of a window, by
// the ids of the last 20 s, and by the slots of a log.
var releasable = []string{
	"10/1m", "100/1h", "1000/1h", "sliding 50/1h", "bucket 10/1m", "bucket 1/5s", "log 100/12h",
	"minute: 10/1m, day: 200/1d", "pace: bucket 1/5s, day: 200/1d", "burst: log 5/1m, hour: sliding 50/1h",
}

// onEachReleasable runs a test for each of them on each store, as a user of its
// own.
func onEachReleasable(t *testing.T, test func(t *testing.T, store Store, r Request)) {
	t.Helper()
	onEachStore(t, func(t *testing.T, store Store) {
		for _, text := range releasable {
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

// The same request is released and then counted again. The first receipt gives
// back nothing more, and the second one gives back its own action.
func TestAReleaseThatIsDoneGivesBackNothing(t *testing.T) {
	onEachReleasable(t, func(t *testing.T, store Store, r Request) {
		c := newClock()
		l := &Limiter{Store: store, Timeout: 5 * time.Second, Now: c.now}
		release := func(at int64, want int64) {
			t.Helper()
			again := r
			again.At = at
			mustDo(t, l, Release, again)
			if got := used(t, l, r); got != want {
				t.Fatalf("%v after the start: %d used, want %d", c.now().Sub(start), got, want)
			}
		}
		c.at(time.Second)
		first := mustCheck(t, l, r).At
		c.at(2 * time.Second)
		release(first, 0)
		release(first, 0)
		c.at(3 * time.Second)
		second := mustCheck(t, l, r).At
		if second == 0 {
			t.Fatal("the released id is not counted again")
		}
		c.at(3500 * time.Millisecond)
		release(first, 1)
		c.at(4 * time.Second)
		release(second, 0)
		release(second, 0)
		release(first, 0)
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
		if err := late(); err != nil {
			t.Fatal(err)
		}
		if got := used(t, plain, r); got != 1 {
			t.Fatalf("%d used after the late release, want 1", got)
		}
		if _, err := plain.Decide(t.Context(), Release, again); err != nil || used(t, plain, r) != 0 {
			t.Errorf("the second receipt: %v, %d used, want 0", err, used(t, plain, r))
		}
	})
}

// The same request is released and counted again. A copy of its first release,
// 20 s after it, changes nothing.
func TestAReleaseIsRememberedFor20Seconds(t *testing.T) {
	onEachReleasable(t, func(t *testing.T, store Store, r Request) {
		c := newClock()
		l := &Limiter{Store: store, Timeout: 5 * time.Second, Now: c.now}
		c.at(time.Second)
		first := r
		first.At = mustCheck(t, l, r).At
		for _, copied := range []time.Duration{2 * time.Second, 22 * time.Second} {
			was := stateOf(t, store, r)
			c.at(copied)
			mustDo(t, l, Release, first)
			if gave, want := stateOf(t, store, r) != was, copied == 2*time.Second; gave != want {
				t.Errorf("at %v the release changes the item: %v, want %v", copied, gave, want)
			}
			c.at(3 * time.Second)
			mustCheck(t, l, r)
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
	if err != nil {
		t.Fatal(err)
	}
	return stateText(item.State)
}

func stateText(s policy.State) string {
	var text strings.Builder
	for _, a := range s {
		text.WriteString(a.Name + "=" + strconv.FormatInt(a.Value, 10) + " ")
	}
	return text.String()
}

// Another instance gives back a check and counts it again, in the next window of one of
// its limits and in one generation of ids. An instance that has seen only the first count
// gives back the second one in each limit.
func TestAReleaseOfWhatWasCountedAgainElsewhere(t *testing.T) {
	timeline(t, "a: 5/10s, b: sliding 9/20s", []moment{
		{at: 9 * time.Second, id: "r1", count: 2, want: "ok 2/5"},
		{at: 9 * time.Second, by: "cold", ask: Release, id: "r1", count: 2, want: "ok 0/5"},
		{at: 11 * time.Second, by: "cold", id: "r1", count: 2, want: "ok 2/5"},
		{at: 11 * time.Second, ask: Release, id: "r1", count: 2, want: "ok 0/5", used: []int64{0, 0}},
	})
}
