package dynamostore_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

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
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
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
