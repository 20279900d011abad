package ratelimit_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A clock before 2020 counts as any other.
func TestALogBefore2020(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, year := range []int{1970, 1999, 2019} {
			c := clockAt(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC))
			l := &Limiter{Store: store, Timeout: 5 * time.Second, Now: c.now}
			for i := range 5 {
				r := request(policy.Must("log 3/1h"), strconv.Itoa(i), 1)
				r.UserID = strconv.Itoa(year)
				if d := mustCheck(t, l, r); d.Allowed != (i < 3) || d.Used != int64(min(i+1, 3)) {
					t.Errorf("%d, check %d: %s, want 3 admitted", year, i, inWords(d))
				}
			}
			c.add(time.Hour)
			r := request(policy.Must("log 3/1h"), "later", 3)
			r.UserID = strconv.Itoa(year)
			if d := mustCheck(t, l, r); !d.Allowed {
				t.Errorf("%d, an hour later: %s, want ok", year, inWords(d))
			}
		}
	})
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

// With clocks further apart, a repeat can count twice. More than twice the limit
// never gets through.
func TestMoreSkewNeverAdmitsMoreThanTwice(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for _, ahead := range []time.Duration{10 * time.Second, 70 * time.Second, 120 * time.Second} {
			twoClocks(t, store, ahead, func(at func(time.Duration), behind, early *Limiter) {
				for _, text := range []string{"10/1m", "log 10/1m", "bucket 10/1m", "sliding 10/1m", "101/1h", "minute: 10/1m, day: 20/1d"} {
					p := policy.Must(text)
					admitted := map[string]int{}
					for i := range 40 {
						at(time.Duration(i) * 100 * time.Millisecond) // 4 s
						for _, l := range []*Limiter{behind, early} {
							r := request(p, strconv.Itoa(i), max(1, p.Most()/10))
							r.UserID = text + ahead.String()
							if d := mustCheck(t, l, r); d.Allowed && d.Reason == OK {
								admitted[text] += int(r.Count)
							}
						}
					}
					if most := 2 * int(p.Most()); admitted[text] > most {
						t.Errorf("%s, clocks %v apart: %d admitted, want at most %d", text, ahead, admitted[text], most)
					}
				}
			})
		}
	})
}

// A clock that is 2 s ahead is in the next period already, and counts a request
// there. The instance that is behind has just seen an item without room for it.
// It does not refuse a repeat of the request from memory.
func TestARepeatOfWhatAClockAheadCountedIsADuplicate(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		twoClocks(t, store, 2*time.Second, func(at func(time.Duration), behind, early *Limiter) {
			p := policy.Must("sliding 2/10s")
			at(9 * time.Second)
			mustCheck(t, behind, request(p, "first", 1))
			r := request(p, "r", 2)
			if d := mustCheck(t, early, r); d.Reason != OK {
				t.Fatalf("the check: %s, want it counted", inWords(d))
			}
			if d := mustCheck(t, behind, r); d.Reason != Duplicate || d.Granted != 2 {
				t.Errorf("the repeat: %s, granted %d, want a duplicate", inWords(d), d.Granted)
			}
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
				if _, err := releaser.Decide(t.Context(), Release, r); err != nil {
					t.Error(err)
				}
				if got := used(t, early, r); got != 1 {
					t.Errorf("%s: %d used after the release, want 1", text, got)
				}
			})
		}
	})
}
