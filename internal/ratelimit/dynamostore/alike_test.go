package dynamostore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A decider makes the requests of a decision.
type decider interface {
	Update(context.Context, ratelimit.Write) (ratelimit.Item, bool, error)
	Read(context.Context, ratelimit.Key) (ratelimit.Item, error)
}

// A stock store makes each request with the SDK's client.
type stock struct {
	client *dynamodb.Client
	table  string
}

func (s stock) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	out, err := s.client.UpdateItem(ctx, UpdateInput(s.table, w))
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return item(refused.Item), false, nil
	}
	if err != nil {
		return ratelimit.Item{}, false, Classify(err)
	}
	return item(out.Attributes), true, nil
}

func (s stock) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: Key(k), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return ratelimit.Item{}, Classify(err)
	}
	return item(out.Item), nil
}

func item(attributes map[string]types.AttributeValue) ratelimit.Item {
	_, item := Parse(attributes)
	return item
}

// A happening is what a store returns.
type happening struct {
	Item    ratelimit.Item
	Done    bool
	Failure ratelimit.Failure
	What    string
}

func happened(item ratelimit.Item, done bool, err error) happening {
	h := happening{Item: item, Done: done}
	if e, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		h.Failure, h.What = e.Failure, e.What
	}
	return h
}

// Through each fault, the store does the same as the SDK's client.
func TestFaultsHaveTheSameEffectAsOnTheSDKsClient(t *testing.T) {
	for _, fault := range append(dynamotest.Faults(), dynamotest.Pass) {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			p, table := dynamotest.NewProxy(t), dynamotest.Table(t)
			cfg, err := p.Config(t.Context())
			testkit.OK(t, err)
			client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
				o.Retryer = aws.NopRetryer{}
				o.DisableValidateResponseChecksum = true // DynamoDB Local sends a wrong one with a failed condition
			})
			var stores [2][]happening
			for i, s := range []decider{New(cfg, table), stock{client, table}} {
				stores[i] = story(t, s, fault, fmt.Sprint("u", i))
			}
			if diff := cmp.Diff(stores[1], stores[0], cmpopts.SortSlices(func(a, b ratelimit.Element) bool { return string(a.ID[:]) < string(b.ID[:]) })); diff != "" {
				t.Errorf("the SDK's client (-) and the store (+) differ:\n%s", diff)
			}
		})
	}
}

// story sends updates of each kind of policy and reads the items. The fault has
// its turn at an update that would succeed, at one whose condition fails, and at
// a read.
func story(t *testing.T, s decider, fault dynamotest.Fault, user string) (list []happening) {
	t.Helper()
	if _, err := s.Read(t.Context(), ratelimit.Key{UserID: user, Activity: "none"}); err != nil { // gets the credentials, too
		t.Fatal(err)
	}
	for _, kind := range []policy.Policy{policy.Must("10/1m"), policy.Must("log 100/12h"), policy.Must("reservoir 2/10s ahead 15m"), policy.Must("minute: 10/1m, day: 200/1d")} {
		now := start.UnixMilli()
		u, _ := kind.Take(now, 1, 1, nil)
		w := take(kind, now, u)
		w.Key.UserID, w.Key.Activity = user, kind.String()[:3]
		again := w
		again.ID = ratelimit.NewID("again")
		try := func(f dynamotest.Fault, w ratelimit.Write) {
			ctx, cancel := suffering(t, f)
			defer cancel()
			list = append(list, happened(s.Update(ctx, w)))
		}
		try(fault, w)
		try(dynamotest.Pass, w)     // it may be counted already
		try(fault, w)               // it is counted
		try(dynamotest.Pass, again) // its guard may hold or not
		ctx, cancel := suffering(t, fault)
		item, err := s.Read(ctx, w.Key)
		list = append(list, happened(item, false, err))
		cancel()
		item, err = s.Read(t.Context(), w.Key)
		list = append(list, happened(item, false, err))
	}
	return list
}

// suffering returns a context whose first request has the fault f. If f hangs,
// the context ends after 200 ms.
func suffering(t *testing.T, f dynamotest.Fault) (context.Context, context.CancelFunc) {
	t.Helper()
	timeout := time.Minute
	if f.Hangs() {
		timeout = 200 * time.Millisecond
	}
	plan := &dynamotest.Plan{Faults: []dynamotest.Fault{f}}
	return context.WithTimeout(plan.In(t.Context()), timeout)
}

// The store's requests have the same JSON as the SDK's, for all policies.
func TestRequestsAreTheSDKs(t *testing.T) {
	testkit.Long.Need(t)
	var sent []map[string]any
	wire := dynamotest.Wire(func(_ string, body map[string]any) string {
		sent = append(sent, body)
		return "{}"
	})
	store := New(wire.Config(), "rateLimit")
	client, _ := store.Table()
	sdk := stock{client, "rateLimit"}
	alike := func(t fataler, w ratelimit.Write) {
		sent = nil
		_, _, _ = store.Update(context.Background(), w)
		_, _, _ = sdk.Update(context.Background(), w)
		if len(sent) != 2 {
			t.Fatalf("%d requests, want 2", len(sent))
		}
		if !reflect.DeepEqual(sent[1], sent[0]) { // much faster than cmp.Diff
			diff := cmp.Diff(sent[1], sent[0])
			ours, _ := json.Marshal(sent[0])
			t.Fatalf("the SDK's request (-) and the store's (+) differ:\n%s\n%s", diff, ours)
		}
	}
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p, n := w.Any(t), int64(1)
		s := w.State(p)
		for _, known := range []policy.State{nil, s} {
			if u, ok := p.Take(w.Now, n, uint64(n), known); ok {
				alike(t, take(p, w.Now, u))
			}
		}
		if u, ok := p.Undo(w.Now, w.Now, p.CountedAt(w.Now, s), n, s); ok {
			for _, write := range undos(p, w.Now, u) {
				alike(t, write)
			}
		}
	})
	for _, k := range []ratelimit.Key{{UserID: `a"b\c<d>&`, Activity: "act", Window: 28333333}, {UserID: "u1", Activity: "send_message"}} {
		sent = nil
		_, _ = store.Read(t.Context(), k)
		_, _ = sdk.Read(t.Context(), k)
		if diff := cmp.Diff(sent[1], sent[0]); diff != "" {
			t.Errorf("the SDK's read (-) and the store's (+) differ:\n%s", diff)
		}
	}
}

// A recorder keeps the bytes of each request. The name of the table does not matter.
type recorder struct {
	aws.HTTPClient

	table string
	sent  *strings.Builder
}

func (r recorder) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(r.sent, req.Header.Get("X-Amz-Target"), strings.ReplaceAll(string(body), r.table, "rateLimit"))
	req.Body = io.NopCloser(bytes.NewReader(body))
	return r.HTTPClient.Do(req)
}

// The decisions of a limit that is not prepaid make the same requests, in the same bytes, as
// before there were prepaid limits. The file was written by the last version without them.
// Since then a bucket alone has the term of since, as one beside other limits, and a
// reservoir looks for ids that have moved, as a log does.
func TestOrdinaryDecisionsMakeTheSameRequests(t *testing.T) {
	table, sent := dynamotest.Table(t), new(strings.Builder)
	cfg := dynamotest.Config(dynamotest.Endpoint(t))
	cfg.HTTPClient = recorder{cfg.HTTPClient, table, sent}
	now := time.UnixMilli(1_700_000_040_000)
	for i, text := range []string{
		"2/1m", "10/12h", "log 2/1m", "log 100/12h", "sliding 2/1h", "bucket 2/1m burst 2", "bucket 1/5s", "reservoir 2/10s ahead 1m",
		"a: 2/1m, b: 9/1h", "a: 2/1m, b: log 5/1h", "a: sliding 2/1m, b: bucket 5/1m burst 3",
	} {
		l := &ratelimit.Limiter{Store: New(cfg, table), Timeout: time.Minute, Now: func() time.Time { return now }}
		ask := func(op ratelimit.Op, id string) {
			fmt.Fprintln(sent, "#", text, op, id)
			_, err := l.Decide(t.Context(), op, ratelimit.Request{UserID: fmt.Sprint("u", i), Activity: "act", Policy: policy.Must(text), Count: 1, ID: id})
			if err != nil {
				t.Fatal(text, op, id, err)
			}
		}
		ask(ratelimit.Check, "r1")
		ask(ratelimit.Check, "r1")
		now = now.Add(7 * time.Second)
		ask(ratelimit.Check, "r2")
		ask(ratelimit.Check, "r3")
		ask(ratelimit.Status, "r3")
		now = now.Add(31 * time.Second)
		ask(ratelimit.Check, "r4")
	}
	want, err := os.ReadFile("testdata/requests.txt")
	testkit.OK(t, err)
	wanted, got := strings.Split(string(want), "\n"), strings.Split(sent.String(), "\n")
	if len(got) != len(wanted) {
		t.Fatalf("%d lines, want %d", len(got), len(wanted))
	}
	for i := range got {
		if got[i] != wanted[i] {
			t.Errorf("line %d of testdata/requests.txt:\n got %s\nwant %s", i+1, got[i], wanted[i])
		}
	}
}
