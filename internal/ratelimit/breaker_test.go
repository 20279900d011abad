package ratelimit_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// another returns a request of another user.
func another(r Request) Request {
	r.UserID = "another"
	return r
}

// elsewhere returns a request of the same user for another activity.
func elsewhere(r Request) Request {
	r.Activity = "elsewhere"
	return r
}

func TestTheCircuitBreakerOpensAfterAnOutageOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		faults []fault
		open   bool
	}{
		"an answer":                           {[]fault{pass}, false},
		"one loss, repaired by a retry":       {[]fault{lose, pass}, false},
		"five losses, repaired by a retry":    {repeat(5, refuse), false},
		"throttling, repaired by a retry":     {repeat(3, throttle), false},
		"no answer in the decision's time":    {[]fault{hang}, true},
		"connections refused until the end":   {[]fault{refuse}, true},
		"access denied":                       {[]fault{deny}, true},
		"a loss after an answer, to the end":  {[]fault{pass, refuse}, false},
		"throttling to the end":               {[]fault{throttle}, false},
		"an item that cannot be read":         {[]fault{unreadable}, false},
		"a request that the table rejects":    {[]fault{reject}, false}, // it says nothing about other requests
		"losses, then an unreadable item":     {[]fault{refuse, unreadable}, false},
		"throttling, then losses, to the end": {[]fault{throttle, refuse}, false}, // the last attempts are short
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := newFaulty(tt.faults...)
			mustCheck(t, l, new(ids).next(1))
			if l.CircuitOpen() != tt.open {
				t.Errorf("after %s the circuit is open: %v, want %v", name, !tt.open, tt.open)
			}
		})
	}
}

func unreadable(context.Context, func() error) error {
	return &StoreError{Failure: Unreadable, What: "unreadable"}
}

// While the circuit breaker is open, every verb is answered at once and sends
// nothing. Checks and status are decided from memory, if the request allows it.
// Everything else gets the error.
func TestAnOpenCircuitAnswersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store, r := opened(t, hang)
		sent, began := store.count(), time.Now()
		for _, alone := range []bool{true, false} {
			for verb, ask := range verbs(l) {
				one := another(r.next(1))
				one.Fallback = alone
				d, err := ask(t.Context(), one)
				if alone && verb < 2 {
					if err != nil || d.Reason != Unavailable || !d.Allowed || d.Outage == nil || d.Requests != 0 {
						t.Errorf("verb %d: %+v, %v, want it from memory", verb, d, err)
					}
				} else if !errors.As(err, new(*StoreError)) {
					t.Errorf("verb %d, alone %v: %+v, %v, want the error", verb, alone, d, err)
				}
			}
		}
		if took := time.Since(began); took != 0 || store.count() != sent {
			t.Errorf("answered after %v with %d requests, want at once without one", took, store.count()-sent)
		}
	})
}

// One decision in 5 s asks the store, with one request and for at most 250 ms, so waiting takes
// at most 5 % of the time. With a decision every 10 ms, probes begin 5 s after the circuit has
// opened, and then every 5 s: failures do not push the next one away. A throttled key stays
// throttled when its next window begins.
func TestAnOpenCircuitIsProbed(t *testing.T) {
	for name, tt := range map[string]struct {
		fault
		limit string
	}{
		"hangs": {hang, "3/1m"}, "refuses": {refuse, "3/1m"}, "drops connections": {lose, "3/1m"}, "denies": {deny, "3/1m"},
		"throttles": {throttle, "3/1m"}, "throttles short windows": {throttle, "5/1s"}, "throttles many": {throttle, "350/1s"},
		"throttles longer windows": {throttle, "10/10s"}, "throttles a bucket": {throttle, "bucket 5/1s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(tt.fault)
			p := policy.Must(tt.limit)
			mustCheck(t, l, request(p, "opens it", 1))
			opened, probes := time.Now(), 0
			for n := 0; time.Since(opened) < 31*time.Second; n++ {
				sent, began := store.count(), time.Since(opened)
				one := request(p, strconv.Itoa(n), 1)
				one.Fallback = n%2 == 0
				if d, err := l.Check(t.Context(), one); (err == nil) != one.Fallback || err == nil && d.Reason != Unavailable {
					t.Errorf("%s: %+v, %v, want an error unless it may be decided alone", name, d, err)
				}
				took := time.Since(opened) - began
				if store.count() == sent {
					if took > 0 {
						t.Errorf("%s: a decision without a request took %v", name, took)
					}
				} else if probes++; store.count() != sent+1 || took > 250*time.Millisecond || (began-time.Duration(probes)*5*time.Second).Abs() > 300*time.Millisecond {
					t.Errorf("%s: probe %d begins after %v, takes %v and %d requests, want one each 5 s, for at most 250 ms", name, probes, began, took, store.count()-sent)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if probes != 6 {
				t.Errorf("%s: %d probes in 31 s, want 6", name, probes)
			}
			settle()
			store.set(pass)
			time.Sleep(9 * time.Second)
			for _, id := range []string{"back", "again"} {
				if d := mustCheck(t, l, request(p, id, 1)); d.Reason != OK {
					t.Errorf("%s: the table answers again: %+v, want ok", name, d)
				}
			}
		})
	}
}

// A probe is answered after 200 of a caller's 300 ms. The same request would need longer than
// is left, so the memory decides.
func TestAProbeThatLeavesTooLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store, r := opened(t, hang)
		time.Sleep(5 * time.Second)
		store.set(func(_ context.Context, perform func() error) error {
			time.Sleep(200 * time.Millisecond)
			return perform()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began, sent := time.Now(), store.count()
		d, err := l.Check(ctx, r.next(1))
		if took := time.Since(began); err != nil || d.Reason != Unavailable || store.count() != sent+1 || took != 200*time.Millisecond {
			t.Errorf("%+v, %v with %d requests after %v, want the memory after the probe", d, err, store.count()-sent, took)
		}
		settle()
	})
}

// Of many concurrent decisions one is the probe.
func TestOneDecisionIsTheProbe(t *testing.T) {
	for name, f := range map[string]fault{"an outage": hang, "a throttled key": throttle} {
		synctest.Test(t, func(t *testing.T) {
			l, store, r := opened(t, f)
			time.Sleep(5 * time.Second)
			var asked atomic.Int64
			var wg sync.WaitGroup
			store.set(func(ctx context.Context, perform func() error) error {
				asked.Add(1)
				return hang(ctx, perform)
			})
			for range 20 {
				one := r.next(1)
				wg.Go(func() {
					if d, err := l.Check(t.Context(), one); err != nil || d.Reason != Unavailable {
						t.Errorf("%s: %+v, %v, want it from memory", name, d, err)
					}
				})
			}
			synctest.Wait()
			if asked.Load() != 1 {
				t.Errorf("%s: %d decisions probe at once, want 1", name, asked.Load())
			}
			wg.Wait()
			settle()
		})
	}
}

func TestTheCircuitClosesWithTheNextAnswer(t *testing.T) {
	for verb := range 4 {
		synctest.Test(t, func(t *testing.T) {
			l, store, r := opened(t, refuse)
			store.set(pass)
			time.Sleep(5*time.Second - time.Millisecond)
			if d := mustCheck(t, l, r.next(1)); d.Reason != Unavailable {
				t.Errorf("before the probe: %+v, want it from memory", d)
			}
			time.Sleep(time.Millisecond)
			if d, err := verbs(l)[verb](t.Context(), another(r.next(1))); err != nil || d.Reason != OK {
				t.Errorf("the probe, verb %d: %+v, %v, want ok", verb, d, err)
			}
			if d := mustCheck(t, l, r.next(1)); d.Reason != OK || l.CircuitOpen() {
				t.Errorf("after the probe: %+v, want the table's decision", d)
			}
		})
	}
}

// Throttling concerns one user's requests for one activity. It moves neither
// other users nor the user's other activities to memory.
func TestThrottlingOpensTheCircuitOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newFaulty(throttle)
		var r ids
		if d := mustCheck(t, l, r.next(1)); d.Reason != Unavailable {
			t.Errorf("the throttled check: %+v, want it from memory", d)
		}
		store.set(pass)
		began := time.Now()
		for verb, ask := range verbs(l) {
			sent := store.count()
			if d, err := ask(t.Context(), r.next(1)); (err == nil) != (verb < 2) || err == nil && d.Reason != Unavailable || store.count() != sent {
				t.Errorf("the same key, verb %d: %+v, %v, want an answer at once without a request", verb, d, err)
			}
			for _, other := range []Request{another(r.next(1)), elsewhere(r.next(1))} {
				if d, err := ask(t.Context(), other); err != nil || d.Reason != OK {
					t.Errorf("%s of %s, verb %d: %+v, %v, want ok", other.Activity, other.UserID, verb, d, err)
				}
			}
		}
		if took := time.Since(began); took != 0 || l.CircuitOpen() {
			t.Errorf("answered after %v, circuit open: %v, want at once and closed", took, l.CircuitOpen())
		}
		time.Sleep(5 * time.Second)
		for range 2 {
			if d := mustCheck(t, l, r.next(1)); d.Reason != OK {
				t.Errorf("5 s later: %+v, want ok", d)
			}
		}
	})
}

// After the clock has stepped back, an open circuit does not wait until the
// clock shows its old time again: the next decision is the probe.
//
//	12:00:00  a check ends as an outage and opens the circuit
//	11:00:00  the clock has stepped back, and the table answers again
//	11:00:00  the next check asks the table
func TestAnOpenCircuitIsProbedAfterTheClockSteppedBack(t *testing.T) {
	for name, f := range map[string]fault{"an outage": hang, "a throttled key": throttle} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(f)
			var r ids
			back := time.Duration(0)
			l.Now = func() time.Time { return time.Now().Add(-back) }
			if d := mustCheck(t, l, r.next(1)); d.Reason != Unavailable {
				t.Fatalf("%s: %+v, want it from memory", name, d)
			}
			store.set(pass)
			back = time.Hour
			if d := mustCheck(t, l, r.next(1)); d.Reason != OK || d.Requests == 0 {
				t.Errorf("%s: after the clock stepped back %+v, want the table's decision", name, d)
			}
		})
	}
}
