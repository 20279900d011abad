package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// Instances take leases of one key and hand them out at the same time, while answers are
// lost, attempts are late and instances die. They admit at most what the item counts, and
// it counts at most the limit. What is missing was held by an instance that died, or lost
// with an answer.
func TestInstancesWithLeasesAdmitAtMostTheLimit(t *testing.T) {
	prove.Explain(t, "histories")
	proxy, table := dynamotest.NewProxy(t), dynamotest.Table(t)
	rig := newRig(t, proxy, table)
	leased, used := 0, 0
	for n := range prove.Bound(8, 1000) {
		text := []string{"150/1h prepaid", "sliding 150/1h prepaid", "bucket 150/1h prepaid", "a: 150/1h prepaid, b: sliding 180/2h prepaid"}[n%4]
		request := ratelimit.Request{UserID: fmt.Sprint("hot", n), Activity: "act", Policy: policy.Must(text), Count: 1, ID: "status"}
		var admitted, held int64
		r := rush{rig: rig, seed: uint64(n), times: 60, lossy: n/4%2 == 1}
		r.act = func(ctx context.Context, l *ratelimit.Limiter, id string, random *rand.Rand) func() {
			q := request
			q.ID, q.Count, q.Partial = id, 1+random.Int64N(3), random.IntN(4) == 0
			d, err := l.Check(ctx, q)
			return func() {
				if err == nil && d.Allowed {
					admitted += d.Granted
				}
				if err != nil && !r.lossy {
					t.Error(err)
				}
				if d.Leased {
					leased++
				}
			}
		}
		window, _ := request.Policy.Item(start)
		living := r.run(t)
		for _, l := range living {
			left, _ := l.Memory.Recall(ratelimit.Key{UserID: request.UserID, Activity: "act", Window: window}).Held(start)
			held += left
		}
		d, err := newLimiter(rig.stores[0], standsStill).Decide(calm(t), ratelimit.Status, request)
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range d.Limits() {
			if limit.Used > limit.Limit || admitted+held > limit.Used || !r.lossy && admitted+held != limit.Used {
				t.Errorf("round %d of %s: %d are admitted, %d are held, and the item counts %d of %d", n, text, admitted, held, limit.Used, limit.Limit)
			}
		}
		used += int(d.Used)
	}
	if leased < used/8 {
		t.Errorf("only %d were decided from leases, and %d are counted", leased, used)
	}
}
