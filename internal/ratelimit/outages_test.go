package ratelimit_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
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

// hot is a store that changes one user's item before each update, so that no
// guard ever holds. Each answer takes some time. Other users' items are as usual.
type hot struct {
	Store
	user  string
	takes time.Duration

	sent, answered int // requests
}

func (h *hot) Update(ctx context.Context, w Write) (Item, bool, error) {
	if w.Key.UserID != h.user {
		return h.Store.Update(ctx, w)
	}
	h.sent++
	select {
	case <-time.After(h.takes):
	case <-ctx.Done():
		return Item{}, false, ctx.Err()
	}
	item := Item{} // an empty bucket and one with an action, in turn
	if h.answered++; h.answered%2 == 1 {
		item.State = policy.Values{"tat": w.Now + 1, "every": 6000, "since": w.Now - 5999, "asof": w.Now - 5999}.State()
	}
	return item, false, nil
}

// A table that answers is not away, even if one item changes too often for a
// decision. The last attempts have so little time that they often get no answer.
func TestAHotItemOpensTheCircuitOfOneKey(t *testing.T) {
	for name, takes := range map[string]time.Duration{
		"the time ends between two attempts": 3 * time.Millisecond,
		"the time ends during an attempt":    40 * time.Millisecond,
		"a few attempts take the whole time": 150 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &hot{Store: new(memstore.Store), user: "u", takes: takes}
			l := &Limiter{Store: store, Timeout: time.Second, Memory: NewMemory(mib)}
			p := policy.Must("bucket 10/1m")
			if d := mustCheck(t, l, request(p, "a", 1)); d.Reason != Unavailable || d.Outage == nil {
				t.Errorf("%s: the hot key: %s, want it from memory", name, inWords(d))
			}
			if l.CircuitOpen() {
				t.Errorf("%s: the circuit breaker is open for all keys", name)
			}
			for verb, ask := range verbs(l) {
				if d, err := ask(t.Context(), another(request(p, strconv.Itoa(verb), 1))); err != nil || d.Reason != OK {
					t.Errorf("%s: another key, verb %d: %s, %v, want ok", name, verb, inWords(d), err)
				}
			}
			sent := store.sent
			if d := mustCheck(t, l, request(p, "c", 1)); d.Reason != Unavailable || store.sent != sent {
				t.Errorf("%s: the hot key again: %s after %d requests, want it from memory without one", name, inWords(d), store.sent-sent)
			}
			time.Sleep(5 * time.Second)
			store.user = "nobody"
			if d := mustCheck(t, l, request(p, "d", 1)); d.Reason != OK {
				t.Errorf("%s: 5 s later: %s, want ok", name, inWords(d))
			}
		})
	}
}

// An item was read before the decision ran out of time. The instance goes on
// from there, and not from what it knew before.
func TestAnAnswerCountsEvenIfTheDecisionFails(t *testing.T) {
	for name, end := range map[string]fault{"throttled": throttle, "refused": refuse, "hanging": hang} {
		synctest.Test(t, func(t *testing.T) {
			store := &faulty{Store: new(memstore.Store), faults: []fault{pass}}
			p := policy.Must("minute: 10/1m, day: 200/1d")
			others := &Limiter{Store: store.Store, Now: newClock().now}
			mustCheck(t, others, request(p, "others", 8))
			l := &Limiter{Store: store, Timeout: time.Second, Memory: NewMemory(mib), Now: newClock().now}
			store.set(pass, end) // the first attempt shows 8 of 10
			if d := mustCheck(t, l, request(p, "a", 2)); d.Reason != Unavailable || !d.Allowed || d.Used != 10 {
				t.Errorf("%s: %s, want the two that are left", name, inWords(d))
			}
			if d := mustCheck(t, l, request(p, "b", 1)); d.Allowed {
				t.Errorf("%s: one more: %s, want it refused", name, inWords(d))
			}
		})
	}
}

// A hot key refuses for up to a second what it saw no room for, even if actions come back
// meanwhile. Then the limit that refuses has that wait, too, and not only the answer.
func TestAHotKeyTellsItsWaitByTheLimit(t *testing.T) {
	l, c := instance(new(memstore.Store))
	p := policy.Must("a: bucket 200/10s prepaid, b: 9000/1d prepaid")
	refused := 0
	for id := range 2000 {
		c.add(time.Millisecond)
		if d := mustCheck(t, l, call(p, id)); !d.Allowed {
			refused++
			if d.Wait <= 0 || d.Each[0].Wait != d.Wait {
				t.Fatalf("request %d: %+v, want the wait of the answer beside the limit %s", id, d, d.LimitedBy)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
