package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// slowly performs a request after half of d, whether or not anybody waits, and answers after d.
func slowly(d time.Duration) fault {
	return func(ctx context.Context, perform func() error) error {
		performed := make(chan error, 1)
		go func() {
			time.Sleep(d / 2)
			performed <- perform()
		}()
		select {
		case <-time.After(d):
			return <-performed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Up to DECISION_TIMEOUT, a slow table decides: nothing is decided from memory, exactly the
// limit is allowed, and the circuit stays closed. Above that, it behaves like an outage.
func TestASlowTableDecides(t *testing.T) {
	for _, tt := range []struct {
		timeout, answers, requests int // milliseconds; the most requests of one decision
	}{
		{1000, 20, 1}, {1000, 90, 1}, {1000, 200, 1}, {1000, 340, 2}, {1000, 600, 2}, {1000, 660, 2}, {1000, 900, 3},
		{250, 20, 1}, {250, 80, 1}, {250, 90, 2}, {250, 150, 2}, {250, 240, 3},
	} {
		for _, instances := range []int{1, 4} {
			t.Run(fmt.Sprintf("%d of %d ms, %d instances", tt.answers, tt.timeout, instances), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Minute - time.Duration(time.Now().UnixNano())%time.Minute) // one window
					store := new(memstore.Store)
					var mu sync.Mutex
					allowed := map[string]int{}
					atOnce(instances, func(i int) {
						f := &faulty{Store: store, faults: []fault{slowly(time.Duration(tt.answers) * time.Millisecond)}}
						l := &Limiter{Store: f, Timeout: time.Duration(tt.timeout) * time.Millisecond, Memory: NewMemory(mib)}
						for n := range 24 {
							r := request(policy.Must("10/1m"), fmt.Sprintf("r%d-%d", i, n), 1)
							r.UserID = fmt.Sprint("u", n%2)
							d := mustCheck(t, l, r)
							if d.Reason != OK && d.Reason != Limited || d.Requests > tt.requests || l.CircuitOpen() {
								t.Errorf("%s after %d requests, circuit open: %v; want it from the table, at most %d, closed", inWords(d), d.Requests, l.CircuitOpen(), tt.requests)
							}
							mu.Lock()
							if d.Allowed {
								allowed[r.UserID]++
							}
							mu.Unlock()
						}
					})
					if allowed["u0"] != 10 || allowed["u1"] != 10 {
						t.Errorf("%v were allowed, want 10 each", allowed)
					}
					settle()
				})
			})
		}
	}
}

// A decision of two requests, one after the other, has one time for both: with a room, or on an
// instance that doesn't know the item yet. As long as both answers come within it, the table
// decides. After that, memory does, and the table still decides what takes one request.
func TestASlowTableDecidesTwoRequestsInOneTime(t *testing.T) {
	for _, timeout := range []int{1000, 250} { // milliseconds
		for _, percent := range []int{2, 9, 20, 34, 45, 49, 55, 60, 90} {
			answers := time.Duration(timeout*percent) * time.Millisecond / 100
			fit := 2*percent < 100
			withRoom := 2*int(answers.Milliseconds()) < timeout-max(100, timeout/5) // this is kept for giving back
			t.Run(fmt.Sprintf("%v of %d ms", answers, timeout), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Minute - time.Duration(time.Now().UnixNano())%time.Minute) // one window
					store := new(memstore.Store)
					instance := func() *Limiter {
						f := &faulty{Store: store, faults: []fault{slowly(answers)}}
						return &Limiter{Store: f, Timeout: time.Duration(timeout) * time.Millisecond, Memory: NewMemory(mib)}
					}
					expect := func(what string, d Decision, table bool) {
						t.Helper()
						if got := d.Reason == OK || d.Reason == Limited; got != table || d.Requests > 5 {
							t.Errorf("%s: %s after %d requests, want it from the table: %v, after at most 5", what, inWords(d), d.Requests, table)
						}
					}
					l := instance()
					for n := range 8 {
						d, err := l.DecideAll(t.Context(), Check, say(fmt.Sprint("r", n), "lounge", true, true), false)
						testkit.OK(t, err)
						expect(fmt.Sprint("with a room, request ", n), d, withRoom || n >= 5)
						one := request(policy.Must("10/1m"), fmt.Sprint("one", n), 1)
						one.UserID = fmt.Sprint("other", n)
						expect(fmt.Sprint("another user, request ", n), mustCheck(t, l, one), true)
					}
					for n := range 4 {
						r := request(policy.Must("bucket 10/1m"), fmt.Sprint("cold", n), 1)
						r.Activity = "cold"
						d := mustCheck(t, instance(), r)
						expect(fmt.Sprint("cold, request ", n), d, fit || n == 0)
					}
					settle()
				})
			})
		}
	}
}

// One connection is dead: the requests on it get no answer and are not performed. A probe on a
// new connection shows that, and then the write goes there.
func TestADeadConnectionCostsTwoRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		faults   []fault
		requests int
		took     time.Duration
	}{
		"the request":               {[]fault{hang, pass}, 3, time.Second / 3},
		"its answer":                {[]fault{hangAfter, pass}, 2, time.Second / 3},
		"the request and the probe": {[]fault{hang, hang, pass}, 4, 2 * time.Second / 3},
		"a slow table, then an error": {[]fault{func(context.Context, func() error) error {
			time.Sleep(400 * time.Millisecond)
			return errors.New("connection reset")
		}, hang, pass}, 3, 412 * time.Millisecond},
		"a slow answer, behind the second write": {[]fault{func(_ context.Context, perform func() error) error {
			time.Sleep(500 * time.Millisecond)
			return perform()
		}, pass, held(time.Second)}, 3, 500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := newFaulty(tt.faults...)
			began := time.Now()
			d := mustCheck(t, l, new(ids).next(1))
			if took := time.Since(began); d.Reason != OK || d.Used != 1 || d.Requests != tt.requests || (took-tt.took).Abs() > 20*time.Millisecond {
				t.Errorf("%s: %+v after %v, want ok with %d requests after %v", name, d, took, tt.requests, tt.took)
			}
			settle()
		})
	}
}

// A status sends a second read beside a slow one, and a reset sends nothing.
func TestWhatIsSentBesideASlowStatusOrReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newFaulty(hang, pass)
		var r ids
		if d := mustDo(t, l, Status, r.next(1)); d.Reason != OK || d.Requests != 2 {
			t.Errorf("status: %+v, want ok after 2 requests", d)
		}
		before := store.count()
		store.set(slowly(900*time.Millisecond), pass)
		if d := mustDo(t, l, Reset, r.next(1)); d.Requests != 1 || store.count() != before+1 {
			t.Errorf("reset: %+v, %d requests, want 1", d, store.count()-before)
		}
		settle()
	})
}

// With one answer in ten lost, on a slow table, what was allowed is what is counted, and each
// release gives back what was counted.
func TestASlowTableThatLosesAnswersCountsOnce(t *testing.T) {
	for _, ms := range []int{20, 300, 400} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(ms)))
			var mu sync.Mutex
			f := &faulty{Store: new(memstore.Store), faults: []fault{func(ctx context.Context, perform func() error) error {
				mu.Lock()
				lost := random.IntN(10) == 0
				mu.Unlock()
				if err := slowly(time.Duration(ms)*time.Millisecond)(ctx, perform); !lost {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}}}
			l := &Limiter{Store: f, Timeout: time.Second, Memory: NewMemory(mib)}
			p, counted, unknown := policy.Must("10000/1h"), int64(0), int64(0)
			for n := range 400 {
				time.Sleep(time.Second)
				r := request(p, fmt.Sprint("r", n), 1)
				r.Fresh, r.Fallback = true, false
				d, err := l.Check(t.Context(), r)
				if err != nil {
					unknown += int64(min(1, d.Requests))
					continue
				}
				if counted++; n%2 == 0 {
					r.At = d.At
					if _, err := l.Decide(t.Context(), Release, r); err == nil {
						counted--
					} else {
						unknown, counted = unknown+1, counted-1
					}
				}
			}
			time.Sleep(10 * time.Second)
			item, err := f.Store.Read(t.Context(), Key{UserID: "u", Activity: "act", Window: time.Now().UnixMilli() / 3_600_000})
			if got := item.State.Get("activityCount"); err != nil || counted < 100 || unknown > 40 || got < counted || got > counted+unknown {
				t.Errorf("%d ms: %d are counted, want %d, and at most %d more: %v", ms, got, counted, unknown, err)
			}
			t.Logf("%d ms: %d counted, %d unknown", ms, counted, unknown)
			settle()
		})
	}
}

// A write is not sent more than 5 s after its time, because it would drop the ids of requests
// that came meanwhile.
func TestAnOldWriteIsNotSent(t *testing.T) {
	for name, frozen := range map[string]time.Duration{"4 s": 4 * time.Second, "6 s": 6 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(pass)
			l.Timeout = 20 * time.Second
			store.set(func(context.Context, func() error) error {
				time.Sleep(frozen)
				return errors.New("connection reset")
			}, pass)
			want := 2
			if frozen > 5*time.Second {
				want = 1
			}
			if d := mustCheck(t, l, new(ids).next(1)); d.Requests != want || (d.Reason == OK) != (want == 2) {
				t.Errorf("after %s: %+v, want %d requests", name, d, want)
			}
			settle()
		})
	}
}
