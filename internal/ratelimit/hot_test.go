package ratelimit_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

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
