package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A clock before 2020 counts as any other.
func TestALogBefore2020(t *testing.T) {
	for _, year := range []int{1970, 1999, 2019} {
		june := time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC).Sub(start)
		timeline(t, "log 3/1h", []moment{
			{at: june, by: "cold", id: "a", want: "ok 1/3"},
			{at: june, by: "cold", id: "b", want: "ok 2/3"},
			{at: june, by: "cold", id: "c", want: "ok 3/3"},
			{at: june, by: "cold", id: "d", want: "limited 3/3, wait 1h0m0s"},
			{at: june + time.Hour, by: "cold", id: "d", count: 3, want: "ok 3/3"},
		})
	}
}

// twoClocks are two instances on one store. The clock of the second one is ahead.
func twoClocks(t *testing.T, store Store, ahead time.Duration, test func(at func(time.Duration), behind, early *Limiter)) {
	t.Helper()
	c, d := newClock(), newClock()
	at := func(offset time.Duration) {
		c.at(offset)
		d.at(offset + ahead)
	}
	at(0)
	test(at,
		&Limiter{Store: store, Timeout: 5 * time.Second, Memory: NewMemory(mib), Now: c.now},
		&Limiter{Store: store, Timeout: 5 * time.Second, Memory: NewMemory(mib), Now: d.now})
}

// With clocks 2 s apart, a repeat is found for 18 s, on either instance and
// wherever the first one lies in its generation.
func TestARepeatIsFoundWithClocksTwoSecondsApart(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, text := range []string{"log 100/12h", "bucket 10/1m burst 15", "101/1h", "minute: 10/1m, day: 200/1d"} {
			for offset := time.Duration(0); offset < 20*time.Second; offset += 1999 * time.Millisecond {
				for _, after := range []time.Duration{0, 18 * time.Second} {
					twoClocks(t, store, 2*time.Second, func(at func(time.Duration), behind, early *Limiter) {
						for name, pair := range map[string][2]*Limiter{"ahead first": {early, behind}, "behind first": {behind, early}} {
							r := request(policy.Must(text), "a", 1)
							r.UserID = text + offset.String() + after.String() + name
							at(time.Minute + offset)
							mustCheck(t, pair[0], r)
							// Another request of the other instance may remove old sets.
							other := r
							other.ID = "other"
							mustCheck(t, pair[1], other)
							at(time.Minute + offset + after)
							if d := mustCheck(t, pair[1], r); d.Reason != Duplicate {
								t.Errorf("%s, %s, at %v and %v later: %s, want duplicate", text, name, offset, after, inWords(d))
							}
						}
					})
				}
			}
		}
	})
}

// A release that comes from a clock 2 s behind is not lost.
func TestAReleaseWithClocksTwoSecondsApart(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		onEachSubject(t, func(t *testing.T, s subject) {
			if s.policy().Queues() {
				t.Skip("a place in a queue is never given back")
			}
			twoClocks(t, store, 2*time.Second, func(at func(time.Duration), behind, early *Limiter) {
				for name, pair := range map[string][2]*Limiter{"ahead first": {early, behind}, "behind first": {behind, early}} {
					r := request(s.policy(), "a", 1)
					r.UserID = s.text + name
					at(10 * time.Second)
					r.At = mustCheck(t, pair[0], r).At
					at(10500 * time.Millisecond)
					for range 2 {
						if d, err := pair[1].Decide(t.Context(), Release, r); err != nil || d.Used != 0 {
							t.Errorf("%s: Release = %s, %v, want nothing used", name, inWords(d), err)
						}
					}
				}
			})
		})
	})
}

// A clock that is 2 s ahead releases a check and does not get the answer. Then a
// clock that is still in the generation of ids before counts the check again. The
// next attempt of the release gives back nothing more.
func TestARetriedReleaseOnAClockAheadGivesBackOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, text := range []string{"bucket 10/1m", "sliding 50/1h", "1000/1h", "minute: 10/1m, day: 200/1d"} {
			twoClocks(t, store, 2*time.Second, func(at func(time.Duration), behind, early *Limiter) {
				at(19 * time.Second)
				r := request(policy.Must(text), "r", 1)
				r.UserID = text
				r.At = mustCheck(t, early, r).At
				slow := &faulty{Store: store, faults: []fault{
					pass, // the read
					lose,
					func(_ context.Context, perform func() error) error {
						again := r
						again.At = 0
						if d := mustCheck(t, behind, again); d.Reason != OK {
							t.Errorf("%s: the repeat: %s, want it counted again", text, inWords(d))
						}
						return perform()
					},
					pass,
				}}
				releaser := &Limiter{Store: slow, Now: early.Now, NewBudget: noPauses(4)}
				mustDo(t, releaser, Release, r)
				if got := used(t, early, r); got != 1 {
					t.Errorf("%s: %d used after the release, want 1", text, got)
				}
			})
		}
	})
}
