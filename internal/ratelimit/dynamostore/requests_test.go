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
)

// A wire answers requests instead of a table. DynamoDB Local is always
// consistent, so only a wire shows whether a read asks for consistency.
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
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		asked := false
		store := wire(func(got string, body map[string]any) string {
			if diff := cmp.Diff(want, body); got != op || diff != "" {
				t.Errorf("the request is %s, want %s (-want +got):\n%s", got, op, diff)
			}
			asked = true
			return `{}`
		}).store()
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
