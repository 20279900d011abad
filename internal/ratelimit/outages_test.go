package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A place whose answer was lost is the same when it is found, whoever came
// meanwhile.
func TestALostPlaceIsFound(t *testing.T) {
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) { aLostPlaceIsFound(t, open(t)) })
	}
}

func aLostPlaceIsFound(t *testing.T, store Store) {
	t.Helper()
	c := &clock{}
	c.at(0)
	p := Reservoir{Limit: 2, Window: 10 * time.Second, Ahead: time.Minute}
	ask := func(s Store, id string) Decision {
		t.Helper()
		l := &Limiter{Store: s, Timeout: 5 * time.Second, Now: c.now}
		d, err := l.Check(t.Context(), Request{UserID: "g", Activity: "act", Policy: p, Count: 1, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i := range 3 {
		ask(store, strconv.Itoa(i))
	}
	others := func(_ context.Context, perform func() error) error {
		_ = perform()
		for _, id := range []string{"x", "y", "z"} {
			ask(store, id)
		}
		return errors.New("connection reset")
	}
	// The first attempt is planned from nothing and refused, the second is lost.
	d := ask(&faulty{Store: store, faults: []fault{pass, others, pass}}, "lost")
	want := Turn{ReadyAt: start.UnixMilli() + 10_000, Enqueued: 2}
	if d.Reason != Delayed || d.Turn != want {
		t.Errorf("the lost place is %+v, want %+v", d, want)
	}
	if last := ask(store, "last"); last.Enqueued != 6 {
		t.Errorf("%d places are given, want 6: one for each who asked", last.Enqueued)
	}
}

// In an outage an instance decides by the same policy, and goes on from what it
// saw.
func TestOutageOfEachPolicy(t *testing.T) {
	for name, subject := range subjects {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, store := newCached(pass)
				l.Now = func() time.Time { return start }
				admitted, places := 0, 0
				for i := range 40 {
					if i == 2 {
						store.faults = []fault{deny}
					}
					r := Request{UserID: "u", Activity: "act", Policy: subject.policy, Count: 1, ID: strconv.Itoa(i)}
					d, err := l.Check(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					if i >= 2 && d.Reason != Unavailable && d.Requests != 0 {
						t.Errorf("decision %d: %s, want unavailable", i, d.Reason)
					}
					switch {
					case d.Allowed:
						admitted++
					case d.ReadyAt != 0:
						places++
					}
				}
				want := subject.capacity
				if name == "wide counter" {
					want = 40
				}
				if admitted != want || name == "reservoir" && places != 30 {
					t.Errorf("%d admitted and %d given places, want %d", admitted, places, want)
				}
			})
		})
	}
}

// What an instance admitted in an outage never takes back what the store has
// shown since.
func TestASecondOutage(t *testing.T) {
	c := &clock{}
	c.at(0)
	p := TokenBucket{Limit: 1, Window: 5 * time.Second, Burst: 3}
	l, store := newCached(pass)
	l.Now = c.now
	id := 0
	ask := func(l *Limiter, f fault, want string) {
		t.Helper()
		store.faults = []fault{f}
		id++
		d, err := l.Check(t.Context(), Request{UserID: "u", Activity: "act", Policy: p, Count: 1, ID: strconv.Itoa(id)})
		if got := inWords(d); err != nil || got != want {
			t.Errorf("decision %d: %s, %v, want %s", id, got, err, want)
		}
	}
	other := &Limiter{Store: store.Store, Now: c.now}
	ask(l, deny, "unavailable 1/3")
	for used := range 3 {
		ask(other, pass, fmt.Sprintf("ok %d/3", used+1))
	}
	ask(l, pass, "limited 3/3, wait 5s")
	c.at(2 * time.Second)
	ask(l, deny, "unavailable 3/3, wait 3s")
}
