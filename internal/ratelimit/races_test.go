package ratelimit_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// 24 callers act at once on one key. Exactly the capacity is admitted, and a
// reservoir gives the others the places that follow.
func TestExactlyTheCapacityUnderARace(t *testing.T) {
	const callers, free = 24, 15 // a wider policy is filled until so many are free
	onEachSubject(t, func(t *testing.T, s subject) {
		onEachStore(t, func(t *testing.T, store Store) {
			p := s.policy()
			// Each caller is an instance of its own.
			own := func() *Limiter {
				return &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: newClock().now}
			}
			if rest := remaining(p) - free; rest > 0 {
				mustCheck(t, own(), request(p, "rest", rest))
			}
			var mu sync.Mutex
			allowed, places := 0, map[int64]int{}
			atOnce(callers, func(i int) {
				r := request(p, strconv.Itoa(i), 1)
				r.Fallback = false
				d, err := own().Check(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if d.Allowed {
					allowed++
				}
				if d.Reason == Delayed {
					places[d.ReadyAt-start.UnixMilli()]++
				}
			})
			if want := min(remaining(p), free); int64(allowed) != want {
				t.Errorf("%d of %d admitted at once, want %d", allowed, callers, want)
			}
			if p.Queues() {
				if diff := cmp.Diff(map[int64]int{10_000: 10, 20_000: 4}, places); diff != "" {
					t.Errorf("places by the start of their window (-want +got):\n%s", diff)
				}
			}
		})
	})
}

// A cold process needs one request for a fixed window, an interval and a sliding
// counter of up to 65. Every other policy needs at most two.
func TestRequestsOfAColdDecision(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		t.Parallel()
		proxy := dynamotest.NewProxy(t)
		store := dynamostore.New(dynamotest.Config(proxy.URL()), dynamotest.Table(t))
		p := s.policy()
		c := newClock()
		worst, all := 0, 0
		const decisions = 60
		for i := range decisions {
			c.add(time.Duration(i%7) * longest(p) / 60)
			cold := &Limiter{Store: store, Timeout: time.Minute, Now: c.now}
			d := mustCheck(t, cold, request(p, strconv.Itoa(i), 1))
			worst, all = max(worst, d.Requests), all+d.Requests
		}
		counts := proxy.Counts()
		if worst > s.cold || counts["UpdateItem"] != all || len(counts) != 1 {
			t.Errorf("a decision takes up to %d requests, want at most %d; %v in all for %d decisions", worst, s.cold, counts, decisions)
		}
		t.Logf("%.2f requests for each decision of a cold process", float64(all)/decisions)
	})
}

// A cold process needs at most two requests wherever the limit was lowered or
// raised before.
func TestRequestsOfAColdDecisionAfterAChange(t *testing.T) {
	for _, tt := range [][2]string{
		{"log 100/12h", "log 50/12h"},
		{"log 50/12h", "log 100/12h"},
		{"bucket 1/12h", "bucket 1/5s"},
		{"10/1m", "5/1m"},
		{"200/1m", "100/1m"},
		{"sliding 60/1h", "sliding 30/1h"},
		{"reservoir 10/10s ahead 15m", "reservoir 5/10s ahead 15m"},
		{"minute: 10/1m, hour: log 100/1h", "minute: 5/1m, hour: log 50/1h"},
	} {
		store, c := new(memstore.Store), newClock()
		p := policy.Must(tt[0])
		for i := range 90 {
			c.add(longest(p) / 200)
			text := tt[0]
			if i > 60 {
				text = tt[1]
			}
			cold := &Limiter{Store: store, Now: c.now}
			if d := mustCheck(t, cold, request(policy.Must(text), strconv.Itoa(i), 1)); d.Requests > 2 {
				t.Errorf("%s after %s: decision %d took %d requests, want at most 2", tt[1], tt[0], i, d.Requests)
			}
		}
	}
}

// However the clock moves within a window, no more is admitted than the policy
// allows in that time.
func TestNoClockAdmitsOverTheLimit(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		p := s.policy()
		window := p.Rates()[0].Window
		c := newClock()
		l := &Limiter{Store: new(memstore.Store), Now: c.now}
		admitted := map[int64]int64{} // by the window that counts them
		for i := range repeats(4000) {
			c.at(time.Duration(rand.Int64N(int64(window))).Truncate(time.Millisecond))
			if d := mustCheck(t, l, request(p, strconv.Itoa(i), 1)); d.Allowed {
				admitted[d.WindowKey]++
			}
		}
		// In one window a bucket admits its burst and as many actions as come back.
		// Several limits have no number of a window, so two windows count as one.
		most := remaining(p)
		if r := p.Rates()[0]; r.Burst > 0 || len(p.Rates()) > 1 {
			most += r.Limit
		}
		for key, n := range admitted {
			if n > most {
				t.Errorf("%d admitted in window %d, want at most %d", n, key, most)
			}
		}
	})
}
