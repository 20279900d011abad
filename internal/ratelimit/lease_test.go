package ratelimit_test

import (
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/ratelimit/storetest"
)

// Random phases of pace, instances that come and go, lost answers, counts, partial checks,
// two tiers and limits that change while leases are out. A judge that knows no leases
// counts what was admitted: never more than the higher limit allows and, of the lower
// tier, never more than the lower one.
func TestALeaseNeverLetsTooMuchThrough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ high, low string }{
		{"2000/1m", "1000/1m"},
		{"300/1s", "150/1s"},
		{"sliding 2000/10s", "sliding 1000/10s"},
		{"bucket 250/1s burst 1000", "bucket 125/1s burst 500"},
		{"bucket 250/1s burst 4000", "bucket 250/1s burst 600"},
		{"a: 300/1s, b: 2000/1m", "a: 200/1s, b: 1000/1m"},
		{"a: 300/1s, b: bucket 125/1s burst 2000", "a: 150/1s, b: bucket 125/1s burst 1000"},
		{"6000/1m cost 5", "3000/1m cost 5"},
	} {
		offered, admitted, handedOut := 0, 0, 0
		for seed := range int64(3) {
			random := rand.New(rand.NewSource(seed))
			var now time.Time
			clock := func() time.Time { return now }
			lose := []float64{0, 0.05, 0.3}[seed%3]
			st := &storetest.Metered{Store: new(memstore.Store), Lose: func() bool { return random.Float64() < lose }}
			fresh := func() *Limiter {
				return &Limiter{Store: st, Memory: NewMemory(mib), Now: clock, NewBudget: func() Budget { return new(four) }}
			}
			instances := make([]*Limiter, 1+random.Intn(20))
			for i := range instances {
				instances[i] = fresh()
			}
			judges := []policy.Policy{policy.Must(c.high), policy.Must(c.low)}
			prepaid := []policy.Policy{leased(c.high), leased(c.low)}
			at, truth, key := float64(newClock().now().UnixMilli()), [2]policy.State{}, int64(0)
			for range 40 {
				pace := []float64{0.001, 20, 300, 1000, 4000}[random.Intn(5)]
				lasts := random.Float64() * 1500
				active := 1 + random.Intn(len(instances))
				lowShare := []float64{0, 0.1, 0.5}[random.Intn(3)]
				switch random.Intn(4) {
				case 0:
					instances[random.Intn(len(instances))] = fresh() // killed, with what it holds
				case 1:
					prepaid = []policy.Policy{leased(c.high), leased(c.low)} // a live limit is read again
				}
				if pace < 1 {
					at += lasts
					continue
				}
				for end := at + lasts; at < end; {
					at += random.ExpFloat64() * 1000 / pace
					now = time.UnixMilli(int64(at))
					tier := 0
					if random.Float64() < lowShare {
						tier = 1
					}
					n := int64(1)
					if random.Intn(20) == 0 {
						n = 1 + random.Int63n(30)
					}
					offered++
					d, err := instances[random.Intn(active)].Check(t.Context(), Request{
						UserID: "hot", Activity: "call", Policy: prepaid[tier], Count: n, Partial: random.Intn(10) == 0,
						ID: strconv.Itoa(offered), Fresh: random.Intn(2) == 0,
					})
					if err != nil || !d.Allowed {
						continue
					}
					admitted++
					if d.Requests == 0 {
						handedOut++
					}
					if k, _ := judges[0].Item(now.UnixMilli()); k != key {
						truth, key = [2]policy.State{}, k
					}
					for i := range tier + 1 {
						u, ok := judges[i].Take(now.UnixMilli(), d.Granted, 1, truth[i])
						if !ok {
							t.Fatalf("%s, seed %d: %d more were admitted than limit %d allows: %+v", c.high, seed, d.Granted, i, judges[i].Read(now.UnixMilli(), d.Granted, truth[i]))
						}
						truth[i] = u.Apply(truth[i])
					}
				}
			}
		}
		if handedOut < admitted/3 {
			t.Errorf("%s: only %d of %d were handed out", c.high, handedOut, admitted)
		}
		t.Logf("%s: %d offered, %d admitted, %d of these from a lease", c.high, offered, admitted, handedOut)
	}
}

// leased returns the limits of a text, all prepaid.
func leased(text string) policy.Policy {
	return policy.Must(strings.ReplaceAll(text, ",", " prepaid,") + " prepaid")
}
