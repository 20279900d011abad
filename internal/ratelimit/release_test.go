package ratelimit_test

import (
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

func TestReleaseGivesBackOnce(t *testing.T) {
	const checked, again = time.Second, time.Second + time.Millisecond
	timeline(t, "3/1m", []moment{
		{at: checked, id: "a", count: 3, want: "ok 3/3"},
		{at: checked, id: "b", want: "limited 3/3, wait 59s"},
		{at: checked, ask: Release, id: "a", count: 2, want: "ok 1/3"},
		{at: checked, ask: Release, id: "a", count: 2, want: "ok 1/3"},
		{at: checked, id: "c", want: "ok 2/3"},                                         // this instance refused a moment ago, and no longer does
		{at: again, id: "a", want: "ok 3/3"},                                           // a released id is new
		{at: again, ask: Release, id: "a", count: 2, receipt: checked, want: "ok 3/3"}, // a late copy of the first release
		{at: 0, ask: Release, id: "a", count: 2, want: "ok 1/3"},                       // a clock behind; the new action, and one more
		{at: 0, ask: Release, id: "a", count: 2, want: "ok 1/3"},
		{at: time.Minute, ask: Release, id: "c", want: "ok 0/3"}, // too late: the window has passed
		{at: 59 * time.Second, ask: Status, id: "s", want: "ok 1/3"},
		{at: 59 * time.Second, ask: Release, id: "c", want: "ok 0/3"},
	})
}

// A receipt may come from an instance whose clock is a little ahead, and no more.
func TestReceiptFromAClockAhead(t *testing.T) {
	forged := time.UnixMilli(policy.Latest).Sub(start)
	timeline(t, "3/1m", []moment{
		{at: 61 * time.Second, id: "a", count: 2, want: "ok 2/3"},
		{at: 59 * time.Second, ask: Release, id: "a", count: 2, receipt: forged, want: "ok 0/3"}, // of this window
		{at: 61 * time.Second, ask: Status, id: "s", want: "ok 2/3"},
		{at: 59 * time.Second, ask: Release, id: "a", count: 2, want: "ok 0/3"},
		{at: 61 * time.Second, ask: Status, id: "s", want: "ok 0/3"},
	})
}

// An instance that has not seen the item gives back too. The item then has no
// trace of the request.
func TestAColdInstanceReleases(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		p := s.policy()
		if p.Queues() {
			t.Skip("a place in a queue is never given back")
		}
		store, c := new(memstore.Store), newClock()
		cold := func() *Limiter { return &Limiter{Store: store, Now: c.now} }
		r := request(p, "a", 1)
		r.At = mustCheck(t, cold(), r).At
		for range 2 {
			if d, err := cold().Decide(t.Context(), Release, r); err != nil || d.Used != 0 {
				t.Errorf("%d used after a release, %v", d.Used, err)
			}
		}
		if d := mustCheck(t, cold(), r); d.Reason != OK || d.Used != 1 {
			t.Errorf("the released id is %s with %d used, want it new", d.Reason, d.Used)
		}
	})
}

// A log gives back a part of a check once. A repeat after 20 to 60 s can give back
// another action of the same millisecond.
func TestALogGivesBackAPartOnce(t *testing.T) {
	timeline(t, "log 5/12h", []moment{
		{at: 0, id: "a", count: 3, want: "ok 3/5"},
		{at: time.Second, ask: Release, id: "a", want: "ok 2/5"},
		{at: 2 * time.Second, ask: Release, id: "a", want: "ok 2/5"},
		{at: 19 * time.Second, ask: Release, id: "a", want: "ok 2/5"},
		{at: 61 * time.Second, ask: Release, id: "a", want: "ok 1/5"},
		{at: 62 * time.Second, ask: Release, id: "a", want: "ok 1/5"},
	})
}

// A log gives nothing back for an id that it should still remember and does not.
func TestALogGivesNothingBackForAnUnknownID(t *testing.T) {
	timeline(t, "log 5/12h", []moment{
		{at: time.Second, id: "a", count: 2, want: "ok 2/5"},
		{at: 18 * time.Second, by: "cold", ask: Release, id: "unknown", receipt: time.Second, want: "ok 2/5"},
	})
}

// After 7 s, one limit can give back nothing, because its bucket is full
// again. The other limit still gets its action back.
func TestSeveralLimitsReleaseWhatStillCounts(t *testing.T) {
	for _, text := range []string{"pace: bucket 1/5s, day: 200/1d", "day: 200/1d, pace: bucket 1/5s"} {
		timeline(t, text, []moment{
			{id: "a", want: "ok 1/1"},
			{at: 7 * time.Second, ask: Release, id: "a", want: "ok 0/1", used: []int64{0, 0}},
			{at: 7 * time.Second, ask: Release, id: "a", want: "ok 0/1", used: []int64{0, 0}},
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
