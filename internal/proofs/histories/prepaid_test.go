package histories_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// Instances take leases of one key and hand them out at the same time, while answers are
// lost, attempts are late and instances die. They admit at most what the item counts, and
// it counts at most the limit. What is missing was held by an instance that died, or lost
// with an answer. The clock stands still.
func TestInstancesWithLeasesAdmitAtMostTheLimit(t *testing.T) {
	proxy, table := dynamotest.NewProxy(t), dynamotest.Table(t)
	r := newRig(t, proxy, table)
	leased, used := 0, 0
	for n := range prove.Bound(8, 1000) {
		text := []string{"150/1h prepaid", "sliding 150/1h prepaid", "bucket 150/1h prepaid", "a: 150/1h prepaid, b: sliding 180/2h prepaid"}[n%4]
		lossy := n/4%2 == 1
		p, user := policy.Must(text), fmt.Sprint("hot", n)
		var mu sync.Mutex
		var late []*dynamotest.Attempt
		var admitted, held int64
		var wg sync.WaitGroup
		for i := range instances {
			random := rand.New(rand.NewPCG(uint64(n), uint64(i)))
			wg.Go(func() {
				l := r.hot(i)
				for k := range 60 {
					plan := &dynamotest.Plan{Attempts: 1 + random.IntN(4), Patience: time.Minute}
					if lossy {
						plan.Faults, plan.Patience = faults(random), time.Millisecond
					}
					q := ratelimit.Request{UserID: user, Activity: "act", Policy: p, Count: 1 + random.Int64N(3), ID: fmt.Sprint(i, " ", k), Partial: random.IntN(4) == 0}
					d, err := l.Check(plan.In(t.Context()), q)
					mu.Lock()
					switch {
					case err == nil && d.Allowed:
						admitted += d.Granted
					case err != nil && !lossy:
						t.Error(err)
					}
					if d.Leased {
						leased++
					}
					for _, a := range plan.Sent() {
						if a.Fault == dynamotest.Late {
							late = append(late, a)
						}
					}
					mu.Unlock()
					if lossy && random.IntN(30) == 0 {
						l = r.hot(i) // the instance has died
					}
				}
				window, _ := p.Item(start)
				left, _ := l.Memory.Recall(ratelimit.Key{UserID: user, Activity: "act", Window: window}).Held(start)
				mu.Lock()
				held += left
				mu.Unlock()
			})
		}
		wg.Wait()
		for _, a := range late {
			if err := a.Deliver(); err != nil {
				t.Error(err)
			}
		}
		ctx := (&dynamotest.Plan{Attempts: 1, Patience: time.Minute}).In(t.Context())
		d, err := r.hot(0).Decide(ctx, ratelimit.Status, ratelimit.Request{UserID: user, Activity: "act", Policy: p, Count: 1, ID: "status"})
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range d.Limits() {
			if limit.Used > limit.Limit || admitted+held > limit.Used || !lossy && admitted+held != limit.Used {
				t.Errorf("round %d of %s: %d are admitted, %d are held, and the item counts %d of %d", n, text, admitted, held, limit.Used, limit.Limit)
			}
		}
		used += int(d.Used)
	}
	if leased < used/8 {
		t.Errorf("only %d were decided from leases, and %d are counted", leased, used)
	}
}

// hot returns a new instance, for which a key is hot from four ids on.
func (r *rig) hot(i int) *ratelimit.Limiter {
	l := &ratelimit.Limiter{
		Store: r.stores[i], Memory: ratelimit.NewMemory(1 << 20), Now: func() time.Time { return time.UnixMilli(start) },
		NewBudget: func() ratelimit.Budget { return new(dynamotest.Budget) },
	}
	l.Memory.Crowd = 4
	return l
}
