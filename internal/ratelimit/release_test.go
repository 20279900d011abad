package ratelimit_test

import (
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

func TestReleaseGivesBackOnce(t *testing.T) {
	c := newClock()
	c.at(time.Second)
	l := &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
	var r ids
	first := r.next(3)
	first.At = check(t, l, first, okay(reading(3, 0), 3)).At
	check(t, l, r.next(1), limited(reading(3, 59*time.Second)))

	back := first
	back.Count = 2
	release := func(want int64) {
		t.Helper()
		d, err := l.Decide(t.Context(), Release, back)
		if err != nil || !d.Allowed || d.Reason != OK || d.Used != want || d.Wait != 0 {
			t.Fatalf("Release = %+v, %v, want allowed, ok, %d used", d, err, want)
		}
	}
	release(1)
	release(1)
	// This instance refused a moment ago, and no longer does. A released id is new.
	check(t, l, r.next(1), okay(reading(2, 0), 1))
	again := first
	again.Count = 1
	c.at(time.Second + time.Millisecond)
	latest := check(t, l, again, okay(reading(3, 0), 1)).At
	release(3) // a late copy of the first release
	back.At = latest

	c.at(0)    // a clock behind the one that counted
	release(1) // gives back the new action, and one more
	release(1)
	back.ID, back.Count = "3", 1
	c.at(time.Minute) // too late: the window has passed
	release(0)
	c.at(59 * time.Second)
	if d, err := l.Decide(t.Context(), Status, r.next(1)); err != nil || d.Used != 1 {
		t.Errorf("Status = %+v, %v, want the action that the late release did not touch", d, err)
	}
	release(0)
}

// A receipt may come from an instance whose clock is a little ahead, and no more.
func TestReceiptFromAClockAhead(t *testing.T) {
	c := newClock()
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	var r ids
	c.at(61 * time.Second)
	first := r.next(2)
	first.At = check(t, l, first, okay(readingNext(2, 0), 2)).At
	c.at(59 * time.Second)
	forged := first
	forged.At = policy.Latest
	for _, step := range []struct {
		Request
		used, window int64
	}{{forged, 0, window}, {first, 0, window + 1}} {
		d, err := l.Decide(t.Context(), Release, step.Request)
		if err != nil || !d.Allowed || d.Used != step.used || d.WindowKey != step.window {
			t.Errorf("Release of %d = %+v, %v, want %d used in window %d", step.At, d, err, step.used, step.window)
		}
	}
	c.at(61 * time.Second)
	if d, err := l.Decide(t.Context(), Status, r.next(1)); err != nil || d.Used != 0 {
		t.Errorf("Status = %+v, %v, want nothing counted after the release", d, err)
	}
	if _, err := l.Decide(t.Context(), Release, Request{Policy: three, ID: "a", Count: -1, At: 1}); err == nil {
		t.Error("Release of -1 actions returns no error")
	}
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

// A user who releases in time can act again, whatever else the item holds.
func TestAReleaseIsKnownToTheInstanceThatMadeIt(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		p := s.policy()
		if p.Queues() {
			t.Skip("a place in a queue is never given back")
		}
		l := &Limiter{Store: new(memstore.Store), Now: newClock().now, Memory: NewMemory(mib)}
		full := request(p, "full", p.Most())
		full.At = mustCheck(t, l, full).At
		if rest := remaining(p) - p.Most(); rest > 0 {
			mustCheck(t, l, request(p, "rest", rest))
		}
		if d := mustCheck(t, l, request(p, "one more", 1)); d.Allowed {
			t.Fatalf("one more is %s, want limited", inWords(d))
		}
		if _, err := l.Decide(t.Context(), Release, full); err != nil {
			t.Fatal(err)
		}
		if d := mustCheck(t, l, request(p, "after", p.Most())); !d.Allowed {
			t.Errorf("after the release: %s, want it allowed", inWords(d))
		}
	})
}

// A log gives up the id together with the slots.
func TestALogsReleasedIDIsNewAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		c := newClock()
		l := &Limiter{Store: store, Timeout: 5 * time.Second, Memory: NewMemory(mib), Now: c.now}
		r := request(policy.Must("log 3/12h"), "a", 2)
		r.At = mustCheck(t, l, r).At
		c.at(time.Second)
		if d, err := l.Decide(t.Context(), Release, r); err != nil || d.Used != 0 {
			t.Fatalf("Release = %+v, %v, want nothing used", d, err)
		}
		c.at(2 * time.Second)
		again := r
		again.At = 0
		if d := mustCheck(t, l, again); d.Reason != OK || d.Used != 2 || d.At == 0 {
			t.Errorf("a check with the released id: %s, receipt %d, want ok 2/3 with a receipt", inWords(d), d.At)
		}
		if d := mustCheck(t, l, again); d.Reason != Duplicate || d.Used != 2 {
			t.Errorf("its repeat: %s, want duplicate 2/3", inWords(d))
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
	c := newClock()
	l := &Limiter{Store: new(memstore.Store), Now: c.now}
	p := policy.Must("log 5/12h")
	r := request(p, "unknown", 1)
	r.At = mustCheck(t, l, request(p, "a", 2)).At
	c.at(17 * time.Second)
	if d, err := l.Decide(t.Context(), Release, r); err != nil || d.Used != 2 {
		t.Errorf("Release = %s, %v, want ok 2/5", inWords(d), err)
	}
}

// One limit has nothing to give back after 7 s, because its bucket is full
// again. The other limit still gets its action back.
func TestSeveralLimitsReleaseWhatStillCounts(t *testing.T) {
	for _, text := range []string{"pace: bucket 1/5s, day: 200/1d", "day: 200/1d, pace: bucket 1/5s"} {
		c := newClock()
		l := &Limiter{Store: new(memstore.Store), Now: c.now, Memory: NewMemory(mib)}
		r := request(policy.Must(text), "a", 1)
		r.At = mustCheck(t, l, r).At
		c.at(7 * time.Second)
		for range 2 {
			d, err := l.Decide(t.Context(), Release, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, each := range d.Each {
				if each.Used != 0 {
					t.Errorf("%s: %d used of the limit %s after the release, want 0", text, each.Used, each.Name)
				}
			}
		}
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
