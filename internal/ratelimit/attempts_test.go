package ratelimit_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// Whatever happens to answers, each decision counts once and is told so.
func TestLostAnswersAreCountedOnce(t *testing.T) {
	for name, f := range map[string]fault{"lost": lose, "hanging, performed": hangAfter, "hanging, not performed": hang, "refused": refuse, "throttled": throttle} {
		for n := range 6 {
			synctest.Test(t, func(t *testing.T) {
				f := &faulty{Store: new(memstore.Store), faults: repeat(n, f)}
				l := &Limiter{Store: f, Timeout: time.Second, Now: newClock().now}
				r := new(ids).next(2)
				r.Fresh = true
				d, err := l.Check(t.Context(), r)
				if err != nil || !d.Allowed || d.Reason != OK || d.Granted != 2 || d.Used != 2 || d.At == 0 || d.Requests != n+1 {
					t.Errorf("%s %d times: %+v, %v, want ok, 2 used, a receipt, %d requests", name, n, d, err, n+1)
				}
			})
		}
	}
}

// A repeat of an earlier decision's request is a duplicate, unless an attempt of
// this decision may have been the one that counted it.
func TestDuplicateOrOK(t *testing.T) {
	for _, tt := range []struct {
		name string
		fault
		want Reason
	}{
		{"found at once", pass, Duplicate},
		{"found after a throttled attempt", throttle, Duplicate},
		{"found after a lost one", lose, OK},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: new(memstore.Store), faults: []fault{pass, tt.fault, pass}}
			l := &Limiter{Store: f, Timeout: time.Second}
			r := new(ids).next(1)
			if d := mustCheck(t, l, r); d.Reason != OK || d.Used != 1 || d.At == 0 {
				t.Errorf("%s: the first check is %+v, want ok with a receipt", tt.name, d)
			}
			if d := mustCheck(t, l, r); d.Reason != tt.want || d.Used != 1 || d.At != 0 {
				t.Errorf("%s: the repeat is %+v, want %s without a receipt", tt.name, d, tt.want)
			}
		})
	}
}

// A receipt is only given if it is known to be right. After an attempt of
// unknown outcome, an id that the caller chose may have been counted earlier.
func TestReceiptAfterALostAnswer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fresh   bool
		faults  []fault
		receipt bool
	}{
		{"an id of the caller, answered", false, []fault{pass}, true},
		{"an id of the caller, throttled and answered", false, []fault{throttle, pass}, true},
		{"an id of the caller, lost and found", false, []fault{lose, pass}, false},
		{"an id of the caller, lost and counted by a later attempt", false, []fault{refuse, pass}, true},
		{"an id of this decision, lost and found", true, []fault{lose, pass}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: new(memstore.Store), faults: tt.faults}
			c := newClock()
			l := &Limiter{Store: f, Timeout: time.Second, Now: c.now}
			r := new(ids).next(2)
			r.Fresh = tt.fresh
			if d := mustCheck(t, l, r); d.Reason != OK || d.Used != 2 || d.Granted != 2 || (d.At != 0) != tt.receipt {
				t.Errorf("%s: %+v, want ok, 2 used, a receipt: %v", tt.name, d, tt.receipt)
			}
		})
	}
}

// The first decision's answer was lost, and the repeat's
// too. A wrong receipt would give back actions of the next period.
func TestARepeatGetsNoReceiptOfAnotherTime(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
			c := newClock()
			l := &Limiter{Store: f, Timeout: time.Second, Now: c.now}
			r := request(s.policy(), "a", 1)
			mustCheck(t, l, r)
			c.at(time.Second)
			f.set(lose, pass)
			if d := mustCheck(t, l, r); d.At != 0 || d.Used != 1 {
				t.Errorf("the repeat is %+v, want 1 used and no receipt", d)
			}
		})
	})
}

func TestAPartialGrantIsKnownAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: new(memstore.Store), faults: []fault{pass, pass, lose, pass}}
		l := &Limiter{Store: f, Timeout: time.Second}
		var r ids
		mustCheck(t, l, r.next(1))
		some := r.next(3)
		some.Partial = true
		if d := mustCheck(t, l, some); d.Reason != OK || d.Granted != 2 || d.Used != 3 {
			t.Errorf("partial check = %+v, want 2 of 3 granted", d)
		}
	})
}

func TestAttemptsLeaveTimeForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timeouts []time.Duration
		measure := func(ctx context.Context, perform func() error) error {
			by, _ := ctx.Deadline()
			timeouts = append(timeouts, time.Until(by))
			return perform()
		}
		f := &faulty{Store: new(memstore.Store), faults: []fault{measure}}
		l := &Limiter{Store: f, Timeout: 900 * time.Millisecond}
		var r ids
		mustCheck(t, l, r.next(1))
		mustCheck(t, l, r.next(1))
		f.set(hang, measure) // 300 ms of 900
		mustCheck(t, l, r.next(1))
		// Half of the time left before a connection is open, a third after that.
		want := []time.Duration{450 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond}
		if !slices.Equal(timeouts, want) {
			t.Errorf("attempts of %v, want %v", timeouts, want)
		}
	})
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

// A caller that leaves ends the attempts. That says nothing about the store, so
// the circuit breaker stays closed.
func TestACallerWhoLeavesEndsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		l, store := newFaulty(func(context.Context, func() error) error {
			leave()
			return context.Canceled
		}, refuse)
		r := new(ids).next(1)
		r.Alone = false
		for range 2 {
			if _, err := l.Check(ctx, r); err == nil || store.count() > 1 {
				t.Errorf("%d attempts, error %v, want an error after one attempt", store.count(), err)
			}
		}
		if l.CircuitOpen() {
			t.Error("the circuit breaker is open, want it closed")
		}
	})
}
