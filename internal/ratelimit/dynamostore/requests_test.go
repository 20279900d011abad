package dynamostore_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// What is read is consistent, except by a sweep, which asks again as it deletes
// and takes no more at once than it has memory for.
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
		"Query": {
			`{"TableName": "rateLimit", "ConsistentRead": true, "Limit": 1000, "ProjectionExpression": "userId, activityWindow",
				"KeyConditionExpression": "userId = :u", "ExpressionAttributeValues": {":u": {"S": "u1"}}}`,
			func(ctx context.Context, s *Store) error { _, err := s.Erase(ctx, "u1", ratelimit.Sweep{}); return err },
		},
		"Scan": {
			`{"TableName": "rateLimit", "Limit": 1000, "ProjectionExpression": "userId, activityWindow, expiresAt",
				"Segment": 63, "TotalSegments": 64}`,
			func(ctx context.Context, s *Store) error { _, err := s.Sweep(ctx, ratelimit.Sweep{}); return err },
		},
	} {
		var want map[string]any
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		asked := false
		store := wire(func(got string, body map[string]any) string {
			if body["Segment"] != want["Segment"] { // of a sweep's many, one is looked at
				return `{}`
			}
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

// Of two batches the first lasts past the end.
func TestTheTimeMayEndWithinAPage(t *testing.T) {
	var page []string
	for range 30 {
		page = append(page, `{"userId": {"S": "u1"}, "activityWindow": {"S": "act#7"}, "expiresAt": {"N": "1"}}`)
	}
	for name, run := range map[string]func(*Store, context.Context, ratelimit.Sweep) (ratelimit.Swept, error){
		"Sweep": (*Store).Sweep,
		"Erase": func(s *Store, ctx context.Context, o ratelimit.Sweep) (ratelimit.Swept, error) {
			return s.Erase(ctx, "u1", o)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var taken atomic.Bool // all is in one segment
			store := wire(func(op string, _ map[string]any) string {
				if op == "BatchExecuteStatement" {
					time.Sleep(time.Minute)
					return `{"Responses": [` + strings.Repeat(`{}, `, 24) + `{}]}`
				}
				if taken.Swap(true) {
					return `{}`
				}
				return `{"Items": [` + strings.Join(page, ", ") + `]}`
			}).store()
			got, err := run(store, t.Context(), ratelimit.Sweep{Now: now, Until: time.Now().Add(time.Minute)})
			want := ratelimit.Swept{Scanned: 30, Stale: 30, Deleted: 25, Users: 1}
			if err != nil || got != want {
				t.Errorf("%s = %+v, %v, want %+v", name, got, err, want)
			}
		})
	}
}

func TestExpires(t *testing.T) {
	storetest.RunExpires(t, func(t testing.TB) (ratelimit.Store, func(ratelimit.Key) int64) {
		t.Helper()
		y := newYard(t)
		return y.Store, func(k ratelimit.Key) int64 { return y.attribute(t, k, "expiresAt") }
	})
}

func TestCreatedAtIsTheFirstWrites(t *testing.T) {
	y := newYard(t)
	k := ratelimit.Key{UserID: "u1", Activity: "act", Window: 7}
	for i, id := range []string{"r1", "r2"} {
		w := ratelimit.Write{Key: k, ID: ratelimit.NewID(id), Now: 1000 * int64(i+1), Expires: now}
		if _, done, err := y.Update(t.Context(), w); err != nil || !done {
			t.Fatal(done, err)
		}
		if got := y.attribute(t, k, "createdAt"); got != 1000 {
			t.Errorf("createdAt is %d after write %d, want 1000", got, i+1)
		}
	}
}

// attribute is a number that an item has beside its state.
func (y yard) attribute(t testing.TB, k ratelimit.Key, name string) (n int64) {
	t.Helper()
	out, err := y.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &y.table, Key: y.key(k.UserID, int(k.Window))})
	if err != nil {
		t.Fatal(err)
	}
	v, ok := out.Item[name].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("the item has no number %s: %v", name, out.Item)
	}
	if err := json.Unmarshal([]byte(v.Value), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
