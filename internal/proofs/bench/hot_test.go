//go:build unix

package bench_test

import (
	"fmt"
	"math/rand"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/ratelimit/storetest"
	"github.com/cric-talk/guards/internal/testkit"
)

// A hotKey is one key that several instances decide about for two minutes of virtual time.
// Each of them lives for two minutes on average.
type hotKey struct {
	limit     string
	instances int
	pace      float64 // decisions a second
}

// cost returns the decisions for each write, the write units a second, and how many requests
// were refused that would have fitted, in percent.
func (k hotKey) cost(t *testing.T) (perWrite, units, refused float64) {
	t.Helper()
	const lasts = 2 * time.Minute
	p, random := policy.Must(k.limit+" prepaid"), rand.New(rand.NewSource(1))
	first := time.UnixMilli(1_800_000_000_000)
	now, store := first, &storetest.Metered{Store: new(memstore.Store)}
	fresh := func() *ratelimit.Limiter {
		return &ratelimit.Limiter{Store: store, Memory: ratelimit.NewMemory(1 << 20), Now: func() time.Time { return now }}
	}
	instances := make([]*ratelimit.Limiter, k.instances)
	for i := range instances {
		instances[i] = fresh()
	}
	admitted, offered, fitted := 0, 0, 0
	ideal, window := policy.State(nil), int64(0)
	for ; now.Before(first.Add(lasts)); offered++ {
		now = now.Add(time.Duration(random.ExpFloat64() * float64(time.Second) / k.pace))
		i := random.Intn(k.instances)
		if random.Float64() < float64(k.instances)/(k.pace*lasts.Seconds()) {
			instances[i] = fresh()
		}
		d, err := instances[i].Check(t.Context(), ratelimit.Request{
			UserID: "hot", Activity: "call", Policy: p, Count: 1, ID: strconv.Itoa(offered), Fresh: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			admitted++
		}
		if w, _ := p.Item(now.UnixMilli()); w != window {
			ideal, window = nil, w
		}
		if u, ok := p.Take(now.UnixMilli(), 1, 1, ideal); ok {
			ideal = u.Apply(ideal)
			fitted++
		}
	}
	return float64(admitted) / float64(store.Writes), store.Units / lasts.Seconds(), 100 * float64(max(0, fitted-admitted)) / float64(offered)
}

// What a hot key costs, in virtual time: write units a second, and how many requests are
// refused that would have fitted.
func TestAHotKeyCostsFewWrites(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		hotKey

		units, refused float64 // at most
	}{
		{hotKey{"60000/1m", 5, 1000}, 10, 2},
		{hotKey{"60000/1m", 50, 1000}, 110, 2},
		{hotKey{"60000/1m", 200, 1000}, 350, 2},
		{hotKey{"60000/1m", 50, 500}, 110, 0},
		{hotKey{"60000/1m", 50, 2000}, 110, 2},
		{hotKey{"sliding 60000/1m", 50, 1000}, 110, 2},
		{hotKey{"bucket 1000/1s burst 2000", 50, 1000}, 480, 2},
		{hotKey{"bucket 1000/1s burst 2000", 50, 2000}, 480, 2},
	} {
		if i%testkit.Bound(4, 1) != 0 {
			continue
		}
		perWrite, units, refused := c.cost(t)
		t.Logf("%s, %d instances, %.0f a second: %.1f decisions a write, %.1f units a second, %.2f %% refused", c.limit, c.instances, c.pace, perWrite, units, refused)
		if units > c.units || refused > c.refused {
			t.Errorf("%s, %d instances, %.0f a second: %.1f units a second and %.2f %% refused, want at most %.0f and %.0f",
				c.limit, c.instances, c.pace, units, refused, c.units, c.refused)
		}
	}
}

// The same at every pace, with a limit that refuses nothing.
func TestPrepaid(t *testing.T) {
	rounds(t)
	fleets := []int{1, 5, 50, 200, 500}
	table := findings.Table{
		Title: "A prepaid key of 600000/1m: decisions a write, and write units a second", Head: []string{"decisions a second"},
	}
	for _, n := range fleets {
		table.Head = append(table.Head, fmt.Sprintf("%d instances", n))
	}
	for _, pace := range []float64{1, 10, 100, 1000, 5000} {
		row := []string{fmt.Sprint(pace)}
		for _, n := range fleets {
			perWrite, units, _ := hotKey{"600000/1m", n, pace}.cost(t)
			row = append(row, fmt.Sprintf("%.1f, %.0f", perWrite, units))
		}
		table.Rows = append(table.Rows, row)
	}
	Save(t, "prepaid", findings.Result{Tables: []findings.Table{table}})
}
