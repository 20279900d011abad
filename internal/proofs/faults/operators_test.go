package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// The work of operators. Their answers contain how many items were deleted. Here
// the words of the ledger describe an item:
//
//	phantom  it is reported as deleted, but is still there
//	lost     it is left, although the work is reported as finished
//	under    it is gone, but should have stayed
const (
	erase ratelimit.Op = "erase"
	sweep ratelimit.Op = "sweep"
)

// nowSeconds is when the sweeps run. A stale item expired before.
const nowSeconds = 1_700_000_000

// sweeps erases users, and sweeps a table, with faults on the way.
func sweeps(t *testing.T, proxy *dynamotest.Proxy, total *tally) {
	t.Helper()
	shared := newRig(t, proxy)
	work := func(r *rig, op ratelimit.Op, seed uint64) func() {
		return func() {
			found := map[word][]string{}
			faults, err := r.work(t.Context(), op, seed, found)
			if err != nil || len(found) > 0 {
				t.Errorf("%s %d: %v, %v", op, seed, err, found)
			}
			total.add(faults, map[ratelimit.Op]int{op: 1}, found)
		}
	}
	for round := range prove.Bound(1, 20) {
		var wg sync.WaitGroup
		for i := range prove.Bound(4, 40) {
			wg.Go(work(shared, erase, uint64(round*100+i)))
		}
		wg.Go(work(newRig(t, proxy), sweep, uint64(round)))
		wg.Wait()
		prove.Progress("faults: operators, round %d, %v", round, total)
	}
}

// work fills the table with items, and has some of them deleted with faults, and
// the rest without.
func (r *rig) work(ctx context.Context, op ratelimit.Op, seed uint64, found map[word][]string) (map[dynamotest.Fault]int, error) {
	random := rand.New(rand.NewPCG(seed, 6))
	mine, other := fmt.Sprint("u", seed), fmt.Sprint("v", seed)
	const doomed, kept = 60, 5
	if err := errors.Join(r.fill(ctx, mine, doomed, nowSeconds-10), r.fill(ctx, other, kept, nowSeconds+10)); err != nil {
		return nil, err
	}
	report := func(w word, format string, args ...any) { found[w] = append(found[w], fmt.Sprintf(format, args...)) }
	behind, o := table.New(r.stores[0].Table()), table.Sweep{Now: nowSeconds, Until: time.Now().Add(time.Minute)}
	faults, deleted := map[dynamotest.Fault]int{}, int64(0)
	for round := 0; ; round++ {
		plan := &dynamotest.Plan{Faults: drawn(random, op, round), Patience: time.Millisecond}
		var swept table.Swept
		var err error
		if op == sweep {
			swept, err = behind.Sweep(plan.In(ctx), o)
		} else {
			swept, err = behind.Erase(plan.In(ctx), mine, o)
		}
		if err != nil && !stopped(err) {
			return nil, err
		}
		for _, a := range plan.Sent() {
			if a.Fault != dynamotest.Pass && (a.Fault != dynamotest.UnprocessedStatements || a.Op == "BatchExecuteStatement") {
				faults[a.Fault]++
			}
		}
		items, lookErr := r.direct.User(ctx, mine)
		if lookErr != nil {
			return nil, lookErr
		}
		left := int64(len(items))
		if deleted += swept.Deleted; deleted > doomed-left {
			report(phantom, "%d items are said to be deleted, and %d of %d are left", deleted, left, doomed)
		}
		if err == nil && swept.Finished {
			if left > 0 {
				report(lost, "the work is finished, and %d items are left", left)
			}
			break
		}
	}
	live, err := r.direct.User(ctx, other)
	if len(live) != kept {
		report(under, "%d items are left of the %d that should stay", len(live), kept)
	}
	return faults, err
}

// stopped reports whether a run ended early because of the table. A later run
// does the rest.
func stopped(err error) bool {
	e, ok := errors.AsType[*ratelimit.StoreError](err)
	return ok && e.Failure != ratelimit.Invalid && e.Failure != ratelimit.Unreadable
}

// drawn draws the faults of one run. After some runs with faults there are none.
func drawn(random *rand.Rand, op ratelimit.Op, round int) (list []dynamotest.Fault) {
	if round > 2 {
		return nil
	}
	kinds := slices.DeleteFunc(dynamotest.Faults(), func(f dynamotest.Fault) bool {
		return f == dynamotest.ReplicaConflict // only for a request that writes one item
	})
	for range map[ratelimit.Op]int{erase: 6, sweep: 80}[op] {
		fault := dynamotest.UnprocessedStatements
		switch random.IntN(8) {
		case 0:
			fault = kinds[random.IntN(len(kinds))]
		case 1, 2, 3:
			fault = dynamotest.Pass
		}
		list = append(list, fault)
	}
	return list
}

// fill adds items of a user, which expire at this time.
func (r *rig) fill(ctx context.Context, user string, n int, expires int64) error {
	for i := range n {
		k := ratelimit.Key{UserID: user, Activity: "act", Window: int64(i) + 1}
		if _, _, err := r.stores[0].Update(ctx, ratelimit.Write{Key: k, Expires: expires}); err != nil {
			return err
		}
	}
	return nil
}
