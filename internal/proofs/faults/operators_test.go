package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// The work of operators. Their answers say how many items were deleted. For them
// the words of the ledger mean:
//
//	phantom  an item is said to be deleted, and is still there
//	lost     the work is said to be finished, and an item is left
//	under    an item is gone that should have stayed
const (
	erase verb = "erase"
	sweep verb = "sweep"
)

// nowSeconds is when the sweeps run. A stale item expired before.
const nowSeconds = 1_700_000_000

// A yard is a table with stale and live items.
type yard struct {
	*table.DynamoDB

	name   string
	direct *dynamodb.Client
}

// sweeps erases users, and sweeps a table, with faults on the way.
func sweeps(t *testing.T, proxy *dynamotest.Proxy, total *tally) {
	t.Helper()
	cfg, err := proxy.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	newYard := func() *yard {
		name := dynamotest.Table(t)
		return &yard{table.New(dynamostore.New(cfg, name).Table()), name, dynamotest.Client(t, dynamotest.Endpoint(t))}
	}
	work := func(y *yard, op verb, seed uint64) func() {
		return func() {
			found := map[word][]string{}
			faults, err := y.work(t.Context(), op, seed, found)
			if err != nil || len(found) > 0 {
				t.Errorf("%s %d: %v, %v", op, seed, err, found)
			}
			total.add(faults, map[verb]int{op: 1}, found)
		}
	}
	shared := newYard()
	for round := range prove.Bound(1, 20) {
		var wg sync.WaitGroup
		for i := range prove.Bound(4, 40) {
			wg.Go(work(shared, erase, uint64(round*100+i)))
		}
		wg.Go(work(newYard(), sweep, uint64(round)))
		wg.Wait()
		prove.Progress("faults: operators, round %d, %v", round, total)
	}
}

// work fills the yard with items, and has some of them deleted with faults, and
// the rest without.
func (y *yard) work(ctx context.Context, op verb, seed uint64, found map[word][]string) (map[dynamotest.Fault]int, error) {
	random := rand.New(rand.NewPCG(seed, 6))
	mine, other := fmt.Sprint("u", seed), fmt.Sprint("v", seed)
	const doomed, kept = 60, 5
	err := errors.Join(y.fill(ctx, mine, doomed, nowSeconds-10), y.fill(ctx, other, kept, nowSeconds+10))
	if err != nil {
		return nil, err
	}
	o := table.Sweep{Now: nowSeconds, Until: time.Now().Add(time.Minute)}
	run := func(plan *dynamotest.Plan) (table.Swept, error) {
		if op == sweep {
			return y.Sweep(plan.In(ctx), o)
		}
		return y.Erase(plan.In(ctx), mine, o)
	}
	faults, deleted := map[dynamotest.Fault]int{}, int64(0)
	for round := 0; ; round++ {
		plan := &dynamotest.Plan{Faults: y.faults(random, op, round), Patience: time.Millisecond}
		swept, err := run(plan)
		if err != nil && !stopped(err) {
			return nil, err
		}
		for _, a := range plan.Sent() {
			if a.Fault != dynamotest.Pass && (a.Fault != dynamotest.UnprocessedStatements || a.Op == "BatchExecuteStatement") {
				faults[a.Fault]++
			}
		}
		left, lookErr := y.count(ctx, mine)
		if lookErr != nil {
			return nil, lookErr
		}
		if deleted += swept.Deleted; deleted > doomed-left {
			found[phantom] = append(found[phantom], fmt.Sprintf("%d items are said to be deleted, and %d of %d are left", deleted, left, doomed))
		}
		if err == nil && swept.Finished {
			if left > 0 {
				found[lost] = append(found[lost], fmt.Sprintf("the work is finished, and %d items are left", left))
			}
			break
		}
	}
	live, err := y.count(ctx, other)
	if live != kept {
		found[under] = append(found[under], fmt.Sprintf("%d items are left of the %d that should stay", live, kept))
	}
	return faults, err
}

// stopped reports whether a run ended early because of the table. A later run
// does the rest.
func stopped(err error) bool {
	e, ok := errors.AsType[*ratelimit.StoreError](err)
	return ok && e.Failure != ratelimit.Invalid && e.Failure != ratelimit.Unreadable
}

// faults draws the faults of one run. After some runs with faults there are
// none.
func (y *yard) faults(random *rand.Rand, op verb, round int) (list []dynamotest.Fault) {
	if round > 2 {
		return nil
	}
	kinds := slices.DeleteFunc(dynamotest.Faults(), func(f dynamotest.Fault) bool {
		return f == dynamotest.ReplicaConflict // only for a request that writes one item
	})
	for range map[verb]int{erase: 6, sweep: 80}[op] {
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
func (y *yard) fill(ctx context.Context, user string, n int, expires int64) error {
	for i := range n {
		_, err := y.direct.PutItem(ctx, &dynamodb.PutItemInput{TableName: &y.name, Item: map[string]types.AttributeValue{
			"userId":         &types.AttributeValueMemberS{Value: user},
			"activityWindow": &types.AttributeValueMemberS{Value: "act#" + strconv.Itoa(i+1)},
			"expiresAt":      &types.AttributeValueMemberN{Value: strconv.FormatInt(expires, 10)},
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// count returns how many items a user has.
func (y *yard) count(ctx context.Context, user string) (int64, error) {
	page, err := y.direct.Query(ctx, &dynamodb.QueryInput{
		TableName: &y.name, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("userId = :u"), Select: types.SelectCount,
		ExpressionAttributeValues: map[string]types.AttributeValue{":u": &types.AttributeValueMemberS{Value: user}},
	})
	if err != nil {
		return 0, err
	}
	return int64(page.Count), nil
}
