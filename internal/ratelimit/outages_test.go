package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// Without Fallback, an outage is an error, and it comes in time.
func TestAnOutageIsAnsweredInTime(t *testing.T) {
	for name, f := range map[string]fault{"hanging": hang, "refused": refuse, "throttled": throttle, "denied": deny} {
		for verb := range 4 {
			synctest.Test(t, func(t *testing.T) {
				l, store := newFaulty(f)
				r := new(ids).next(1)
				r.Fallback = false
				began := time.Now()
				_, err := verbs(l)[verb](t.Context(), r)
				if !errors.As(err, new(*StoreError)) {
					t.Errorf("%s, verb %d: the error is %v, want a StoreError", name, verb, err)
				}
				if took := time.Since(began); took > time.Second || name == "denied" && took > 0 {
					t.Errorf("%s, verb %d: answered after %v", name, verb, took)
				}
				want := map[string]int{"hanging": 3, "refused": 6, "throttled": 6, "denied": 1}[name]
				if verb == 3 && name != "throttled" { // a reset is not sent again
					want = 1
				}
				if store.count() != want {
					t.Errorf("%s, verb %d: %d attempts, want %d", name, verb, store.count(), want)
				}
			})
		}
	}
}

// A grant was made, its answer was lost, and then the store is away. The decision
// still tells how much was granted.
func TestAnOutageAfterALostPartialGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store, c := onClock(pass)
		var r ids
		mustCheck(t, l, r.next(1))
		teach := func(_ context.Context, perform func() error) error {
			_ = perform()
			store.set(pass)
			c.add(time.Millisecond) // later than the first attempt
			mustDo(t, l, Status, r.next(1))
			store.set(refuse)
			return errors.New("lost")
		}
		store.set(pass, teach, refuse)
		some := r.next(3)
		some.Partial, some.Fresh = true, true
		if d := mustCheck(t, l, some); d.Reason != Unavailable || d.Granted != 2 || d.Used != 3 || d.At != 0 {
			t.Errorf("Check = %+v, want the two that were granted, without a receipt", d)
		}
	})
}

// In an outage an instance goes on from what it last saw counted.
func TestAnOutageGoesOnFromTheLastStateSeen(t *testing.T) {
	l, store, c := onClock(pass)
	var r ids
	seen := r.next(1)
	for i, step := range []struct {
		fault
		Request
		allowed bool
		used    int64
	}{
		{pass, seen, true, 1},
		{deny, r.next(1), true, 2},
		{deny, seen, true, 2},       // a repeat is counted once, here too
		{deny, r.next(2), false, 2}, // the same policy
		{pass, r.next(1), true, 2},  // the table never saw the action that was admitted alone
		{deny, r.next(1), true, 3},  // this instance did: one action alone, and two in the table
		{deny, r.next(1), false, 3},
	} {
		c.at(time.Duration(6*i) * time.Second) // the circuit breaker probes each time
		store.set(step.fault)
		d := mustCheck(t, l, step.Request)
		if d.Allowed != step.allowed || d.Used != step.used {
			t.Fatalf("request %s: %+v, want allowed %v, %d used", step.ID, d, step.allowed, step.used)
		}
		if alone := d.Outage != nil; (d.Reason == Unavailable) != alone {
			t.Fatalf("request %s: %+v, want unavailable if the table is away", step.ID, d)
		}
	}
	if d, err := l.Decide(t.Context(), Status, r.next(1)); err != nil || d.Reason != Unavailable || d.Allowed || d.Used != 3 {
		t.Errorf("Status = %+v, %v, want it from memory", d, err)
	}
}

// An attempt of unknown outcome that did count is not counted twice.
func TestAnOutageAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newFaulty(lose)
		var r ids
		if d := mustCheck(t, l, r.next(1)); d.Reason != Unavailable || d.Used != 1 {
			t.Fatalf("Check = %+v, want it from memory", d)
		}
		time.Sleep(5 * time.Second)
		store.set(pass)
		if d := mustCheck(t, l, r.next(1)); d.Reason != OK || d.Used != 2 {
			t.Fatalf("Check = %+v, want the one that reached the table and this", d)
		}
		store.set(refuse)
		if d := mustCheck(t, l, r.next(1)); !d.Allowed || d.Used != 3 {
			t.Fatalf("Check = %+v, want the third", d)
		}
	})
}

// A freeze holds up a check until long after its time. Then it is decided from memory, and
// the memory still knows the requests that it has decided meanwhile.
func TestAFrozenCheckForgetsNoNewerRequest(t *testing.T) {
	for _, text := range []string{"1000/1h", "bucket 5/1m", "log 5/1m", "sliding 5/1h", "a: 5/1h, b: log 5/1m"} {
		l, store, c := onClock(pass)
		l.NewBudget = noPauses(1)
		p := policy.Must(text)
		freeze := func(context.Context, func() error) error {
			c.add(30 * time.Second)
			mustCheck(t, l, request(p, "newer", 1))
			return errors.New("timeout")
		}
		store.set(freeze, refuse)
		mustCheck(t, l, request(p, "frozen", 1))
		before := mustDo(t, l, Status, request(p, "status", 1)).Used
		if d := mustCheck(t, l, request(p, "newer", 1)); d.Reason != Unavailable || d.Used != before {
			t.Errorf("%s: a repeat is told %s, %d used, want %d from memory", text, d.Reason, d.Used, before)
		}
	}
}
