package ratelimit_test

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// Without Fallback, an outage is an error, and it comes in time. A request is sent at most six
// times, with pauses of half of 775 ms to all of it.
func TestAnOutageIsAnsweredInTime(t *testing.T) {
	for name, tt := range map[string]struct {
		fault
		failure     Failure
		sent        int
		least, most time.Duration
	}{
		"hanging":           {hang, Unknown, 3, 0, time.Second},
		"refused":           {refuse, Unknown, 6, 387 * time.Millisecond, 775 * time.Millisecond},
		"drops connections": {lose, Unknown, 6, 387 * time.Millisecond, 775 * time.Millisecond},
		"throttled":         {throttle, NotApplied, 6, 387 * time.Millisecond, 775 * time.Millisecond},
		"denied":            {deny, Misconfigured, 1, 0, 0},
		"rejected":          {reject, Invalid, 1, 0, 0},
	} {
		for verb := range 4 {
			synctest.Test(t, func(t *testing.T) {
				l, store := newFaulty(tt.fault)
				r := new(ids).next(1)
				r.Fallback = false
				began := time.Now()
				d, err := verbs(l)[verb](t.Context(), r)
				if e, ok := errors.AsType[*StoreError](err); !ok || e.Failure != tt.failure {
					t.Errorf("%s, verb %d: the error is %v, want a StoreError of class %d", name, verb, err, tt.failure)
				}
				want, least := tt.sent, tt.least
				if verb == 3 && name != "throttled" { // a reset has no id: sent again, it could remove what was counted since
					want, least = 1, 0
				}
				if took := time.Since(began); took < least || took > tt.most {
					t.Errorf("%s, verb %d: answered after %v, want %v to %v", name, verb, took, least, tt.most)
				}
				if store.count() != want || d.Requests != want {
					t.Errorf("%s, verb %d: %d attempts, and it says %d, want %d", name, verb, store.count(), d.Requests, want)
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
		item.State = policy.State{{Name: "asof", Value: w.Now - 5999}, {Name: "every", Value: 6000}, {Name: "since", Value: w.Now - 5999}, {Name: "tat", Value: w.Now + 1}}
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

// Each row is a check of 10/1m after 7 actions were counted. A repeat of an earlier decision's
// request is a duplicate, unless an attempt of this decision may have been the one that counted
// it. A receipt is only given if it is known to be right: after an attempt of unknown outcome,
// an id that the caller chose may have been counted earlier. And only the attempt that is known
// to have counted says that it crossed 80 %.
func TestWhatADecisionTells(t *testing.T) {
	for name, tt := range map[string]struct {
		faults  []fault
		op      Op   // empty: check
		repeat  bool // the request was counted before
		fresh   bool // its id is this decision's own
		count   int64
		want    Reason
		receipt bool
		crossed int64
	}{
		"new":                                 {faults: []fault{pass}, count: 1, want: OK, receipt: true, crossed: 80},
		"new, throttled before":               {faults: []fault{throttle, pass}, count: 1, want: OK, receipt: true, crossed: 80},
		"new, the request was lost":           {faults: []fault{refuse, pass}, count: 1, want: OK, receipt: true, crossed: 80},
		"new, the answer was lost":            {faults: []fault{lose, pass}, count: 1, want: OK},
		"new, its own id, lost and found":     {faults: []fault{lose, pass}, fresh: true, count: 1, want: OK, receipt: true},
		"new, its own id, the answer hangs":   {faults: []fault{hangAfter, pass}, fresh: true, count: 3, want: OK, receipt: true},
		"an outage":                           {faults: []fault{refuse}, count: 1, want: Unavailable},
		"an outage after it was counted":      {faults: []fault{lose, refuse}, count: 1, want: Unavailable},
		"a refusal":                           {faults: []fault{pass}, count: 4, want: Limited},
		"a status of what would cross":        {faults: []fault{pass}, op: Status, count: 1, want: OK},
		"a reset":                             {faults: []fault{pass}, op: Reset, count: 1, want: OK},
		"a reset, throttled before":           {faults: []fault{throttle, pass}, op: Reset, count: 1, want: OK},
		"a repeat, found at once":             {faults: []fault{pass}, repeat: true, count: 2, want: Duplicate},
		"a repeat, after a throttled attempt": {faults: []fault{throttle, pass}, repeat: true, count: 2, want: Duplicate},
		"a repeat, after a lost one":          {faults: []fault{lose, pass}, repeat: true, count: 2, want: OK},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(pass)
			r := request(policy.Must("10/1m"), "a", tt.count)
			mustCheck(t, l, request(r.Policy, "before", 7))
			if tt.repeat {
				mustCheck(t, l, r)
			}
			store.set(tt.faults...)
			r.Fresh = tt.fresh
			op := cmp.Or(tt.op, Check)
			d := mustDo(t, l, op, r)
			if d.Reason != tt.want || (d.At != 0) != tt.receipt || d.Crossed != tt.crossed {
				t.Errorf("%s: %+v, want %s, a receipt: %v, crossed %d", name, d, tt.want, tt.receipt, tt.crossed)
			}
			if counts := op == Check && tt.want != Limited; counts && (d.Used != 7+tt.count || d.Granted != tt.count) {
				t.Errorf("%s: %+v, want the 7 of before and %d used", name, d, tt.count)
			}
			settle()
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
