package table_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// over returns a table whose requests w answers.
func over(w dynamotest.Wire) *DynamoDB {
	return New(dynamostore.New(w.Config(), "rateLimit").Table())
}

// An erasure reads consistently. A sweep does not need to, because its deletes
// have a condition. Both read a page that fits in memory.
func TestRequests(t *testing.T) {
	for op, tt := range map[string]struct {
		want string
		ask  func(context.Context, *DynamoDB) error
	}{
		"Query": {
			`{"TableName": "rateLimit", "ConsistentRead": true, "Limit": 1000, "ProjectionExpression": "userId, activityWindow",
				"KeyConditionExpression": "userId = :u", "ExpressionAttributeValues": {":u": {"S": "u1"}}}`,
			func(ctx context.Context, s *DynamoDB) error { _, err := s.Erase(ctx, "u1", Sweep{}); return err },
		},
		"Scan": {
			`{"TableName": "rateLimit", "Limit": 1000, "ProjectionExpression": "userId, activityWindow, expiresAt",
				"Segment": 63, "TotalSegments": 64}`,
			func(ctx context.Context, s *DynamoDB) error { _, err := s.Sweep(ctx, Sweep{}); return err },
		},
	} {
		var want map[string]any
		testkit.OK(t, json.Unmarshal([]byte(tt.want), &want))
		asked := false
		table := over(func(got string, body map[string]any) string {
			if body["Segment"] != want["Segment"] { // a sweep reads many segments; this test looks at one
				return `{}`
			}
			if diff := cmp.Diff(want, body); got != op || diff != "" {
				t.Errorf("%s, want %s (-want +got):\n%s", got, op, diff)
			}
			asked = true
			return `{}`
		})
		if err := tt.ask(t.Context(), table); err != nil || !asked {
			t.Errorf("%s: error %v, sent: %v", op, err, asked)
		}
	}
}

// A busy table throttles nine attempts at each part before it answers.
func TestASweepOutlastsThrottledReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		attempts := map[any]int{} // by segment
		got, err := over(func(_ string, scan map[string]any) string {
			mu.Lock()
			defer mu.Unlock()
			if attempts[scan["Segment"]]++; attempts[scan["Segment"]] < 10 {
				return `{"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`
			}
			return `{}`
		}).Sweep(t.Context(), Sweep{Now: now})
		if want := (Swept{Finished: true}); err != nil || !cmp.Equal(got, want) || len(attempts) != Parts {
			t.Errorf("Sweep = %+v, %v after attempts at %d parts, want all %d read", got, err, len(attempts), Parts)
		}
	})
}

// A scan reads 8 KB with one read unit. Each of its four segments takes at least half a
// unit, so the smallest table takes 2.
func TestTheEstimateIsTheSizeOfTheTable(t *testing.T) {
	for _, tt := range []struct {
		items, bytes int64
		units        float64
	}{
		{0, 0, 2},
		{1, 400, 2},
		{100, 2 * 8192, 2},
		{100, 2*8192 + 1, 3},
		{8192, 819_200, 100},
		{48_210, 9_175_040, 1120},
		{3, 3 * 400 << 10, 150},
	} {
		d := over(func(op string, body map[string]any) string {
			if op != "DescribeTable" || body["TableName"] != "rateLimit" {
				t.Errorf("%s of %v", op, body)
			}
			return fmt.Sprintf(`{"Table": {"ItemCount": %d, "TableSizeBytes": %d}}`, tt.items, tt.bytes)
		})
		if got, err := d.Estimate(t.Context()); err != nil || got != (Cost{Items: tt.items, Units: tt.units}) {
			t.Errorf("%d items with %d bytes: %+v, %v, want %v read units", tt.items, tt.bytes, got, err, tt.units)
		}
	}
}

// DynamoDB reports what each page took. The cost that Items returns is their sum, over
// all pages of all segments.
func TestItemsSumsWhatEachPageTook(t *testing.T) {
	d := over(func(_ string, scan map[string]any) string {
		if scan["ReturnConsumedCapacity"] != "TOTAL" || scan["TotalSegments"] != 4.0 {
			t.Errorf("%v, want the capacity of four segments", scan)
		}
		item := fmt.Sprintf(`{"userId": {"S": "u%v"}, "activityWindow": {"S": "create_post#1"}}`, scan["Segment"])
		if scan["ExclusiveStartKey"] == nil && scan["Segment"] == 2.0 {
			return `{"Items": [` + item + `], "ConsumedCapacity": {"CapacityUnits": 128}, "LastEvaluatedKey": {"userId": {"S": "u2"}, "activityWindow": {"S": "a"}}}`
		}
		return `{"Items": [` + item + `], "ConsumedCapacity": {"CapacityUnits": 0.5}}`
	})
	cost, err := d.Items(t.Context(), func(ratelimit.Key, ratelimit.Item) {})
	if want := (Cost{Items: 5, Units: 130}); err != nil || cost != want {
		t.Errorf("%+v, %v, want %+v", cost, err, want)
	}
}
