package ratelimit_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A release gives back what its check took, whatever number comes with it.
func TestAReleaseWithAnotherNumber(t *testing.T) {
	for _, text := range append(scalable, "bucket 20/1h burst 30 max 90", "40/1h max 180 cost 2", "bucket 40/1h burst 44 max 180 cost 2") {
		for _, n := range []int64{0, 1, 7, 59, 60, 90, 1000} {
			onEachStore(t, func(t *testing.T, store Store) {
				c := newClock()
				l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib), Timeout: 10 * time.Second}
				used := func() []int64 { return eachUsed(mustDo(t, l, Status, request(numbered(text, 60), "s", 1))) }
				mustCheck(t, l, request(numbered(text, 60), "other", 3))
				before := used()
				r := request(numbered(text, 60), "a", 5)
				r.At = mustCheck(t, l, r).At
				r.Policy = numbered(text, n)
				for range 2 {
					if d := mustDo(t, l, Release, r); !d.Allowed {
						t.Errorf("%s: a release with the number %d: %s", text, n, inWords(d))
					}
				}
				if after := used(); !slices.Equal(after, before) {
					t.Errorf("%s: %d were used, and after a check and a release with the number %d %d", text, before, n, after)
				}
			})
		}
	}
}

// Slots are renewed with another number than the check's.
func TestARenewalWithAnotherNumber(t *testing.T) {
	for _, n := range []int64{0, 1, 90} {
		onEachStore(t, func(t *testing.T, store Store) {
			c := newClock()
			l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib), Timeout: 10 * time.Second}
			r := request(numbered("log 20/1h max 90", 60), "a", 50)
			r.At = mustCheck(t, l, r).At
			r.Policy = numbered("log 20/1h max 90", n)
			c.add(50 * time.Minute)
			if d := mustDo(t, l, Renew, r); !d.Allowed || d.At != c.now().UnixMilli() || d.Granted != 50 {
				t.Errorf("with the number %d: %+v", n, d)
			}
			c.add(50 * time.Minute)
			if d := mustDo(t, l, Status, request(numbered("log 20/1h max 90", 60), "s", 1)); d.Used != 50 {
				t.Errorf("with the number %d, %d count, want 50", n, d.Used)
			}
		})
	}
}

// A held receipt serves for 15 minutes, with other numbers in between and in the end.
func TestAHeldReceiptWithANumber(t *testing.T) {
	for _, text := range []string{"20/1d max 1000", "20/1d max 90", "bucket 20/1d max 1000", "sliding 20/1d max 1000", "tokens: 900/1h max 9000, jobs: log 9/1h max 90"} {
		onEachStore(t, func(t *testing.T, store Store) {
			c := newClock()
			l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib), Timeout: 10 * time.Second}
			held := func(number int64, id string, n int64) Request {
				r := request(numbered(text, number), id, n)
				r.Hold = true
				return r
			}
			r := held(60, "r1", 9)
			r.At = mustCheck(t, l, r).At
			for i := range 25 {
				c.add(20 * time.Second)
				if d := mustCheck(t, l, held([]int64{70, 5, 90}[i%3], "o"+strconv.Itoa(i), 1)); d.Requests > 2 {
					t.Fatalf("%s: %+v", text, d)
				}
			}
			if d := mustCheck(t, l, held(9, "r1", 9)); d.Reason != Duplicate {
				t.Fatalf("%s: a repeat with a low number: %s", text, inWords(d))
			}
			c.at(14 * time.Minute)
			before := eachUsed(mustDo(t, l, Status, held(90, "s", 1)))
			r.Policy, r.Count = numbered(text, 2), 6
			for range 2 {
				mustDo(t, &Limiter{Store: store, Now: c.now}, Release, r)
			}
			for i, n := range eachUsed(mustDo(t, l, Status, held(90, "s", 1))) {
				if n != before[i]-6 {
					t.Errorf("%s: %d were used of limit %d, and after a release of 6 %d", text, before[i], i, n)
				}
			}
		})
	}
}
