package dynamostore_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/storetest"
)

// A wire answers requests in a table's place, for what DynamoDB Local, always
// consistent and on a clock of its own, does not show.
type wire func(op string, body map[string]any) (answer string)

// Do implements the SDK's HTTP client.
func (w wire) Do(r *http.Request) (*http.Response, error) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(w(op, body)))}, nil
}

func (w wire) store() *Store {
	cfg := dynamotest.Config("http://table.invalid")
	cfg.HTTPClient = w
	return New(cfg, "rateLimit")
}

// Reads are consistent.
func TestRequests(t *testing.T) {
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
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		asked := false
		store := wire(func(got string, body map[string]any) string {
			if diff := cmp.Diff(want, body); got != op || diff != "" {
				t.Errorf("%s, want %s (-want +got):\n%s", got, op, diff)
			}
			asked = true
			return `{}`
		}).store()
		if err := tt.ask(t.Context(), store); err != nil || !asked {
			t.Errorf("%s: error %v, sent: %v", op, err, asked)
		}
	}
}

func TestExpires(t *testing.T) {
	storetest.RunExpires(t, func(t testing.TB) (ratelimit.Store, func(ratelimit.Key) int64) {
		t.Helper()
		table := dynamotest.Table(t)
		store := New(dynamotest.Config(dynamotest.Endpoint(t)), table)
		return store, func(k ratelimit.Key) int64 { return attribute(t, table, k, "expiresAt") }
	})
}

func TestCreatedAtIsTheTimeOfTheFirstWrite(t *testing.T) {
	table := dynamotest.Table(t)
	store := New(dynamotest.Config(dynamotest.Endpoint(t)), table)
	k := ratelimit.Key{UserID: "u1", Activity: "act", Window: 7}
	for i, id := range []string{"r1", "r2"} {
		w := ratelimit.Write{Key: k, ID: ratelimit.NewID(id), Now: 1000 * int64(i+1), Expires: 1_700_000_000}
		if _, done, err := store.Update(t.Context(), w); err != nil || !done {
			t.Fatal(done, err)
		}
		if got := attribute(t, table, k, "createdAt"); got != 1000 {
			t.Errorf("createdAt is %d after write %d, want 1000", got, i+1)
		}
	}
}

// attribute returns a number that an item has beside its state.
func attribute(t testing.TB, table string, k ratelimit.Key, name string) (n int64) {
	t.Helper()
	out, err := dynamotest.Client(t, dynamotest.Endpoint(t)).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table,
		Key: map[string]types.AttributeValue{
			"userId":         &types.AttributeValueMemberS{Value: k.UserID},
			"activityWindow": &types.AttributeValueMemberS{Value: k.Activity + "#" + strconv.FormatInt(k.Window, 10)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	v, ok := out.Item[name].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("the item has no number %s: %v", name, out.Item)
	}
	if n, err = strconv.ParseInt(v.Value, 10, 64); err != nil {
		t.Fatal(err)
	}
	return n
}
