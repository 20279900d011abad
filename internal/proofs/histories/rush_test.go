package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A rush is what all instances do at the same time about a few items, while the clock
// stands still. In the end, late attempts arrive.
type rush struct {
	*rig

	seed  uint64
	times int  // how often each instance acts
	lossy bool // attempts are lost or late, and instances die

	// act asks l, and returns what to do with the answer. That runs for one instance at
	// a time.
	act func(ctx context.Context, l *ratelimit.Limiter, id string, random *rand.Rand) (note func())
}

func standsStill() time.Time { return time.UnixMilli(start) }

// calm returns a context that lets each attempt pass.
func calm(t *testing.T) context.Context {
	t.Helper()
	return (&dynamotest.Plan{Attempts: 1, Patience: time.Minute}).In(t.Context())
}

// run performs the rush. It returns the instances that live at its end.
func (r *rush) run(t *testing.T) (living [instances]*ratelimit.Limiter) {
	t.Helper()
	var mu sync.Mutex
	var late []*dynamotest.Attempt
	var wg sync.WaitGroup
	for i, store := range r.stores {
		random := rand.New(rand.NewPCG(r.seed, uint64(i)))
		wg.Go(func() {
			living[i] = newLimiter(store, standsStill)
			for k := range r.times {
				plan := &dynamotest.Plan{Attempts: 1 + random.IntN(4), Patience: time.Minute}
				if r.lossy {
					plan.Faults, plan.Patience = faults(random), time.Millisecond
				}
				note := r.act(plan.In(t.Context()), living[i], fmt.Sprint(i, " ", k), random)
				mu.Lock()
				note()
				for _, a := range plan.Sent() {
					if a.Fault == dynamotest.Late {
						late = append(late, a)
					}
				}
				mu.Unlock()
				if r.lossy && random.IntN(20) == 0 {
					living[i] = newLimiter(store, standsStill)
				}
			}
		})
	}
	wg.Wait()
	for _, a := range late {
		if err := a.Deliver(); err != nil {
			t.Error(err)
		}
	}
	return living
}
