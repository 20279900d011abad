package cleanup_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

type attributes = map[string]types.AttributeValue

// A crowd is a table with items that have expired, items that have not, and
// users who act.
type crowd struct {
	table  string
	client *dynamodb.Client
	store  *dynamostore.Store
	now    time.Time // the clock of the users stands still, so nothing they do expires or comes back
	asked  []asked   // what each user did
}

// An asked counts the checks of one user.
type asked struct {
	user   string
	act    int // an index of acts
	checks int64
}

// An act is an activity with its policy. Nothing that is counted comes back
// while the users' clock stands still.
type act struct {
	activity string
	policy   policy.Policy
}

// most is how many actions each policy allows.
const most = 10

// acts has a policy whose item is for one window, and two whose item serves
// forever. Only an item of the latter can expire and come alive again.
var acts = []act{
	{"create_post", policy.Must("10/1d")},
	{"send_message", policy.Must("bucket 10/10d")},
	{"pin", policy.Must("log 10/12h")},
}

func newCrowd(t testing.TB) *crowd {
	t.Helper()
	endpoint, name := dynamotest.Endpoint(t), dynamotest.Table(t)
	return &crowd{
		table: name, client: dynamotest.Client(t, endpoint), store: dynamostore.New(dynamotest.Config(endpoint), name),
		now: time.Now().Add(24 * time.Hour), // a day ahead, so that nothing that users do expires during the test
	}
}

// limiter returns a limiter at this time. It has no memory, so that the table
// decides each request.
func (c *crowd) limiter(now time.Time) *ratelimit.Limiter {
	return &ratelimit.Limiter{Store: c.store, Timeout: time.Minute, Now: func() time.Time { return now }}
}

// template returns an item of each act, in their order, as a check at this time
// leaves it.
func (c *crowd) template(t testing.TB, at time.Time) (items []attributes) {
	t.Helper()
	for _, a := range acts {
		r := ratelimit.Request{UserID: "template", Activity: a.activity, Policy: a.policy, Count: 1, ID: "r", Fresh: true}
		if d, err := c.limiter(at).Check(t.Context(), r); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		item := c.scan(t, "userId = :user", attributes{":user": dynamostore.Text("template")})[0]
		testkit.Must(c.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &c.table, Key: attributes{"userId": item["userId"], "activityWindow": item["activityWindow"]},
		}))(t)
		items = append(items, item)
	}
	return items
}

// fill adds n items of different users. Each is a copy of one of these.
func (c *crowd) fill(t testing.TB, users string, n int, items []attributes) {
	t.Helper()
	const writers, batch = 8, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for first := w * batch; first < n && !t.Failed(); first += writers * batch {
				var puts []types.WriteRequest
				for i := first; i < min(first+batch, n); i++ {
					item := maps.Clone(items[i%len(items)])
					item["userId"] = dynamostore.Text(fmt.Sprint(users, i))
					puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
				}
				out, err := c.client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{c.table: puts}})
				if err != nil || len(out.UnprocessedItems) > 0 {
					t.Errorf("fill the table: %v, %d unprocessed", err, len(out.UnprocessedItems))
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// scan returns the items that a filter leaves.
func (c *crowd) scan(t testing.TB, filter string, values attributes) (items []attributes) {
	t.Helper()
	in := &dynamodb.ScanInput{TableName: &c.table, ConsistentRead: aws.Bool(true), FilterExpression: &filter, ExpressionAttributeValues: values}
	for pages := dynamodb.NewScanPaginator(c.client, in); pages.HasMorePages(); {
		page := testkit.Must(pages.NextPage(t.Context()))(t)
		items = append(items, page.Items...)
	}
	return items
}

// kept returns the items that nobody may touch, by their users.
func (c *crowd) kept(t testing.TB) map[string]attributes {
	t.Helper()
	items := map[string]attributes{}
	for _, item := range c.scan(t, "begins_with(userId, :kept) OR begins_with(userId, :ours)", attributes{
		":kept": dynamostore.Text("kept"), ":ours": dynamostore.Text(" "),
	}) {
		items[dynamostore.TextOf(item["userId"])] = item
	}
	return items
}

// unchanged checks that the items that nobody may touch are as they were before.
func (c *crowd) unchanged(t testing.TB, before map[string]attributes) {
	t.Helper()
	after := c.kept(t)
	for user, item := range before {
		if !reflect.DeepEqual(item, after[user]) {
			t.Errorf("the item of %q has changed from %v to %v", user, item, after[user])
		}
	}
}

// acting lets users act until stop is called, which reports the first error.
func (c *crowd) acting(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	acted := make(chan error, 1)
	go func() { acted <- c.act(ctx) }()
	return func() {
		cancel()
		testkit.NoError(t, <-acted)
	}
}

// act lets users act until ctx is done, on some goroutines at once. Each user
// belongs to one of them, so the user's k-th check has to count k. The first
// error ends it.
func (c *crowd) act(ctx context.Context) error {
	const goroutines = 4
	l := c.limiter(c.now)
	var all sync.WaitGroup
	failed := make([]error, goroutines)
	for g := range goroutines {
		all.Go(func() {
			mine := len(c.asked) / goroutines
			for ctx.Err() == nil && failed[g] == nil {
				failed[g] = c.asked[g*mine+rand.IntN(mine)].check(context.WithoutCancel(ctx), l)
				time.Sleep(prove.Bound(20*time.Millisecond, 50*time.Millisecond)) // most users act for the first time while items are deleted
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// check makes one check and compares the answer with what the user did before.
func (a *asked) check(ctx context.Context, l *ratelimit.Limiter) error {
	a.checks++
	r := ratelimit.Request{
		UserID: a.user, Activity: acts[a.act].activity, Policy: acts[a.act].policy, Count: 1, ID: fmt.Sprint(a.checks), Fresh: true,
	}
	d, err := l.Check(ctx, r)
	if err == nil && (d.Used != min(a.checks, most) || d.Allowed != (a.checks <= most)) {
		err = fmt.Errorf("check %d of %s is %+v, want %d used", a.checks, a.user, d, min(a.checks, most))
	}
	return err
}

// judge compares what the table counts for each user with what the user did.
func (c *crowd) judge(t testing.TB) (users int, checks int64) {
	t.Helper()
	l := c.limiter(c.now)
	for _, a := range c.asked {
		if a.checks == 0 {
			continue // the user's item, if there was one, has expired
		}
		users++
		checks += a.checks
		r := ratelimit.Request{UserID: a.user, Activity: acts[a.act].activity, Policy: acts[a.act].policy, Count: 1, ID: "status"}
		if d, err := l.Decide(t.Context(), ratelimit.Status, r); err != nil || d.Used != min(a.checks, most) {
			t.Errorf("after %d checks, %s has %+v, %v, want %d used", a.checks, a.user, d, err, min(a.checks, most))
		}
	}
	return users, checks
}
