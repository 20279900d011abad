package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// Whatever happens to answers, each decision counts once and is told so.
func TestLostAnswersAreCountedOnce(t *testing.T) {
	for name, f := range map[string]fault{"lost": lose, "hanging, performed": hangAfter, "hanging, not performed": hang, "refused": refuse, "throttled": throttle} {
		hangs := strings.HasPrefix(name, "hanging")
		for n := range 6 {
			requests := n + 1
			if hangs && n > 2 { // two probes are sent beside a request
				break
			}
			if name == "hanging, not performed" && n > 0 { // the probe shows that it has to be sent again
				requests++
			}
			synctest.Test(t, func(t *testing.T) {
				l, _ := newFaulty(repeat(n, f)...)
				r := new(ids).next(2)
				r.Fresh = true
				d, err := l.Check(t.Context(), r)
				if err != nil || !d.Allowed || d.Reason != OK || d.Granted != 2 || d.Used != 2 || d.At == 0 || d.Requests != requests {
					t.Errorf("%s %d times: %+v, %v, want ok, 2 used, a receipt, %d requests", name, n, d, err, requests)
				}
			})
		}
	}
}

// A repeat of an earlier decision's request is a duplicate, unless an attempt of this
// decision may have been the one that counted it. A receipt is only given if it is known
// to be right: after an attempt of unknown outcome, an id that the caller chose may have
// been counted earlier.
func TestDuplicateOrOK(t *testing.T) {
	for name, tt := range map[string]struct {
		repeat  bool // the request was counted before
		fresh   bool // its id is this decision's own
		faults  []fault
		want    Reason
		receipt bool
	}{
		"new":                                 {faults: []fault{pass}, want: OK, receipt: true},
		"new, throttled before":               {faults: []fault{throttle, pass}, want: OK, receipt: true},
		"new, the answer was lost":            {faults: []fault{lose, pass}, want: OK},
		"new, the request was lost":           {faults: []fault{refuse, pass}, want: OK, receipt: true},
		"new, its own id, lost and found":     {fresh: true, faults: []fault{lose, pass}, want: OK, receipt: true},
		"a repeat, found at once":             {repeat: true, faults: []fault{pass}, want: Duplicate},
		"a repeat, after a throttled attempt": {repeat: true, faults: []fault{throttle, pass}, want: Duplicate},
		"a repeat, after a lost one":          {repeat: true, faults: []fault{lose, pass}, want: OK},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(pass)
			r := new(ids).next(2)
			if tt.repeat {
				mustCheck(t, l, r)
			}
			store.set(tt.faults...)
			r.Fresh = tt.fresh
			if d := mustCheck(t, l, r); d.Reason != tt.want || d.Used != 2 || d.Granted != 2 || (d.At != 0) != tt.receipt {
				t.Errorf("%s: %+v, want %s, 2 used, a receipt: %v", name, d, tt.want, tt.receipt)
			}
		})
	}
}

// However short the time, a store that answers is asked.
func TestAShortTimeoutStillAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{time.Nanosecond, time.Millisecond, 9 * time.Millisecond, 20 * time.Millisecond} {
			f := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
			l := &Limiter{Store: f, Timeout: timeout, Memory: NewMemory(mib)}
			for range 2 {
				if d, err := l.Check(t.Context(), new(ids).next(1)); err != nil || d.Outage != nil || d.Requests != 1 {
					t.Errorf("within %v: %+v, %v, want the store's answer", timeout, d, err)
				}
			}
		}
	})
}

// A caller that leaves ends the attempts. That says nothing about the store, not even
// after an answer, so the circuit breaker stays closed.
func TestACallerWhoLeavesEndsTheAttempts(t *testing.T) {
	for name, before := range map[string][]fault{"at the first attempt": nil, "after an answer": {pass}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			l, store := newFaulty(pass)
			p := policy.Must("minute: 10/1m, day: 200/1d")
			mustCheck(t, &Limiter{Store: store.Store}, request(p, "others", 1))
			store.set(append(before, func(context.Context, func() error) error {
				leave()
				return context.Canceled
			}, refuse)...)
			r := request(p, "a", 1)
			r.Fallback = false
			for range 2 {
				if _, err := l.Check(ctx, r); err == nil || store.count() > len(before)+1 {
					t.Errorf("%s: %d attempts, error %v, want an error after it", name, store.count(), err)
				}
			}
			store.set(pass)
			if d := mustCheck(t, l, request(p, "b", 1)); d.Reason != OK || l.CircuitOpen() {
				t.Errorf("%s: the next check: %s, circuit open: %v, want ok and closed", name, inWords(d), l.CircuitOpen())
			}
		})
	}
}

// A reset has no id. A second delete could remove what was counted since
// the first, so it is not sent after an unknown outcome.
func TestAResetOfUnknownOutcomeIsNotSentAgain(t *testing.T) {
	for name, f := range map[string]fault{"lost": lose, "hanging": hangAfter, "refused": refuse} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(pass)
			mustCheck(t, l, new(ids).next(2))
			store.set(f, pass)
			sent := store.count()
			_, err := l.Decide(t.Context(), Reset, new(ids).next(1))
			if e, ok := errors.AsType[*StoreError](err); !ok || e.Failure != Unknown {
				t.Errorf("%s: the error is %v, want a StoreError of unknown outcome", name, err)
			}
			if n := store.count() - sent; n != 1 {
				t.Errorf("%s: %d requests, want 1", name, n)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l, store := newFaulty(pass)
		mustCheck(t, l, new(ids).next(2))
		store.set(throttle, pass)
		if d, err := l.Decide(t.Context(), Reset, new(ids).next(1)); err != nil || d.Used != 0 || d.Requests != 2 {
			t.Errorf("a throttled Reset = %+v, %v, want it sent again", d, err)
		}
	})
}
