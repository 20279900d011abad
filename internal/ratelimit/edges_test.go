package ratelimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A queue beside a day: alone, jobs that get a place after midnight count for
// today.
func TestAloneOtherLimitsCountNow(t *testing.T) {
	c := newClock()
	midnight := start.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(start)
	c.at(midnight - 2*time.Minute)
	l, store := newFaulty(pass)
	l.Now = c.now
	p := policy.Must("q: reservoir 1/10s ahead 15m, day: 50/1d")
	for i := range 20 {
		mustCheck(t, l, request(p, "table "+strconv.Itoa(i), 1))
	}
	store.set(deny)
	for i := range 5 {
		if d := mustCheck(t, l, request(p, "alone "+strconv.Itoa(i), 1)); d.ReadyAt == 0 || d.Reason != Unavailable {
			t.Errorf("job %d alone: %s, want a place", i, inWords(d))
		}
	}
}

// An item does not grow, whatever pauses its user makes, and however often the user
// releases.
func TestAnItemDoesNotGrow(t *testing.T) {
	for text, pause := range map[string]time.Duration{"sliding 5/1m": 25 * time.Minute, "10/12h": 2 * time.Second} {
		c, store := newClock(), new(memstore.Store)
		l := &Limiter{Store: store, Memory: NewMemory(mib), Now: c.now}
		r := request(policy.Must(text), "", 1)
		for i := range 500 {
			c.add(rand.N(pause))
			r.ID, r.At = strconv.Itoa(i), 0
			r.At = mustCheck(t, l, r).At
			if text == "10/12h" {
				mustDo(t, l, Release, r)
			}
		}
		window, _ := r.Policy.Item(c.now().UnixMilli())
		item, err := store.Read(t.Context(), Key{UserID: r.UserID, Activity: r.Activity, Window: window})
		ids := 0
		for _, set := range item.IDs {
			ids += len(set.Elements)
		}
		if err != nil || len(item.State) > 4 || len(item.IDs) > 5 || ids > 60 {
			t.Errorf("%s: the item keeps %d numbers and %d ids in %d sets, %v, want a few", text, len(item.State), ids, len(item.IDs), err)
		}
	}
}

// A request that the table refuses says nothing about other requests.
func TestARefusedRequestOpensNoCircuit(t *testing.T) {
	l, _ := newFaulty(func(context.Context, func() error) error {
		return &StoreError{Failure: Invalid, What: "the table refused the request", Err: errors.New("too large")}
	})
	if d := mustCheck(t, l, new(ids).next(1)); d.Reason != Unavailable || d.Requests != 1 || l.CircuitOpen() {
		t.Errorf("%s after %d requests, circuit open: %v; want it decided alone after one, and closed", inWords(d), d.Requests, l.CircuitOpen())
	}
}

// A check is counted in a window of up to 100, and the limit is raised. The
// release counts until the window ends.
func TestAReleaseAfterTheLimitWasRaised(t *testing.T) {
	timeline(t, "100/12h", []moment{
		{id: "r1", want: "ok 1/100"},
		{at: 30 * time.Second, by: "cold", ask: Release, id: "r1", limit: "200/12h", want: "ok 0/200"},
	})
}

// A max above 100 is added to a limit of up to 100. The ids of before are known for the whole
// window, and those from then on for 20 s. A max that is taken away changes it back.
func TestIdsAfterAMaxWasAdded(t *testing.T) {
	const long, short = "10/12h", "10/12h max 200"
	timeline(t, long, []moment{
		{id: "r1", want: "ok 1/10"},
		{at: time.Minute, by: "cold", id: "r1", limit: short, want: "duplicate 1/10"},
		{at: time.Minute, by: "cold", id: "r2", want: "ok 2/10"},
		{at: 80 * time.Second, by: "cold", id: "r2", want: "duplicate 2/10"},
		{at: 2 * time.Minute, by: "cold", id: "r2", want: "ok 3/10"},
		{at: 10 * time.Minute, by: "cold", ask: Release, id: "r1", want: "ok 2/10"},
		{at: 10 * time.Minute, by: "cold", ask: Release, id: "r2", want: "ok 2/10"},
		{at: 11 * time.Minute, by: "cold", id: "r3", want: "ok 3/10"},
		{at: 12 * time.Minute, by: "cold", id: "r3", limit: long, want: "ok 4/10"},
		{at: time.Hour, by: "cold", id: "r3", want: "duplicate 4/10"},
	})
}
