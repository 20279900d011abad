package dynamostore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/storetest"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) ratelimit.Store {
		t.Helper()
		return New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	})
}

func TestExpires(t *testing.T) {
	storetest.RunExpires(t, func(t testing.TB) (ratelimit.Store, func(ratelimit.Key) int64) {
		t.Helper()
		table := dynamotest.Table(t)
		store := New(dynamotest.Config(dynamotest.Endpoint(t)), table)
		return store, func(k ratelimit.Key) int64 { return attribute(t, table, k, "expiresAt") }
	})
}

// through returns a limiter on a new table, behind a proxy that counts
// requests. A busy machine has a minute to answer, so that no request is sent
// again.
func through(t testing.TB) (*ratelimit.Limiter, *dynamotest.Proxy) {
	t.Helper()
	p := dynamotest.NewProxy(t)
	store := New(dynamotest.Config(p.URL()), dynamotest.Table(t))
	return &ratelimit.Limiter{Store: store, Timeout: time.Minute, Now: func() time.Time { return start }}, p
}

var start = time.UnixMilli(1_700_000_040_000)

var tenAMinute = policy.Must("10/1m")

func request(id string) ratelimit.Request {
	return ratelimit.Request{UserID: "u1", Activity: "act", Count: 1, ID: id, Policy: tenAMinute}
}

// Operators and the cleanup function rely on these attributes. The time of creation is the
// time of the first write.
func TestAWindowsItemHasTheDocumentedAttributes(t *testing.T) {
	table := dynamotest.Table(t)
	endpoint := dynamotest.Endpoint(t)
	now := start
	l := &ratelimit.Limiter{Store: New(dynamotest.Config(endpoint), table), Now: func() time.Time { return now }}
	for _, id := range []string{"r1", "r2"} {
		if _, err := l.Check(t.Context(), request(id)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	page, err := dynamotest.Client(t, endpoint).Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil || len(page.Items) != 1 {
		t.Fatal(page, err)
	}
	one, two := ratelimit.NewID("r1"), ratelimit.NewID("r2")
	want := map[string]types.AttributeValue{
		"userId":         &types.AttributeValueMemberS{Value: "u1"},
		"activityWindow": &types.AttributeValueMemberS{Value: "act#28333334"},
		"activity":       &types.AttributeValueMemberS{Value: "act"},
		"windowKey":      &types.AttributeValueMemberN{Value: "28333334"},
		"activityCount":  &types.AttributeValueMemberN{Value: "2"},
		"createdAt":      &types.AttributeValueMemberN{Value: "1700000040000"},
		"expiresAt":      &types.AttributeValueMemberN{Value: "1700000220"},
		"ids":            &types.AttributeValueMemberBS{Value: [][]byte{one[:], two[:]}},
	}
	unexported := cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberBS{})
	if diff := cmp.Diff(want, page.Items[0], unexported, cmpopts.SortSlices(bytes.Compare)); diff != "" {
		t.Errorf("the item (-want +got):\n%s", diff)
	}
}

// over returns a store whose requests w answers.
func over(w dynamotest.Wire) *Store { return New(w.Config(), "rateLimit") }

func TestReadsAreConsistentAndDeletesHaveNoCondition(t *testing.T) {
	k := ratelimit.Key{UserID: "u1", Activity: "act", Window: 7}
	for op, tt := range map[string]struct {
		want string
		ask  func(context.Context, *Store) error
	}{
		"GetItem": {
			`{"TableName": "rateLimit", "ConsistentRead": true, "Key": {"userId": {"S": "u1"}, "activityWindow": {"S": "act#7"}}}`,
			func(ctx context.Context, s *Store) error { _, err := s.Read(ctx, k); return err },
		},
		"DeleteItem": {
			`{"TableName": "rateLimit", "Key": {"userId": {"S": "u1"}, "activityWindow": {"S": "act#7"}}}`,
			func(ctx context.Context, s *Store) error { return s.Delete(ctx, k) },
		},
	} {
		var want map[string]any
		testkit.OK(t, json.Unmarshal([]byte(tt.want), &want))
		asked := false
		store := over(func(got string, body map[string]any) string {
			if diff := cmp.Diff(want, body); got != op || diff != "" {
				t.Errorf("the request is %s, want %s (-want +got):\n%s", got, op, diff)
			}
			asked = true
			return `{}`
		})
		if err := tt.ask(t.Context(), store); err != nil || !asked {
			t.Errorf("%s: error %v, sent: %v", op, err, asked)
		}
	}
}

func itemKey(k ratelimit.Key) map[string]types.AttributeValue {
	sort := k.Activity
	if k.Window != 0 {
		sort += "#" + strconv.FormatInt(k.Window, 10)
	}
	return map[string]types.AttributeValue{
		"userId":         &types.AttributeValueMemberS{Value: k.UserID},
		"activityWindow": &types.AttributeValueMemberS{Value: sort},
	}
}

// attribute returns a number of an item that is not part of its state.
func attribute(t testing.TB, table string, k ratelimit.Key, name string) (n int64) {
	t.Helper()
	out, err := dynamotest.Client(t, dynamotest.Endpoint(t)).GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: itemKey(k)})
	testkit.OK(t, err)
	v, ok := out.Item[name].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("the item has no number %s: %v", name, out.Item)
	}
	if n, err = strconv.ParseInt(v.Value, 10, 64); err != nil {
		t.Fatal(err)
	}
	return n
}
