package table_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
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
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
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

// The time ends while the first of two batches is on its way.
func TestTheTimeMayEndWithinAPage(t *testing.T) {
	var page []string
	for range 30 {
		page = append(page, `{"userId": {"S": "u1"}, "activityWindow": {"S": "act#7"}, "expiresAt": {"N": "1"}}`)
	}
	for name, run := range map[string]func(*DynamoDB, context.Context, Sweep) (Swept, error){
		"Sweep": (*DynamoDB).Sweep,
		"Erase": func(s *DynamoDB, ctx context.Context, o Sweep) (Swept, error) {
			return s.Erase(ctx, "u1", o)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var taken atomic.Bool // all items are in one segment
			table := over(func(op string, _ map[string]any) string {
				if op == "BatchExecuteStatement" {
					time.Sleep(time.Minute)
					return `{"Responses": [` + strings.Repeat(`{}, `, 24) + `{}]}`
				}
				if taken.Swap(true) {
					return `{}`
				}
				return `{"Items": [` + strings.Join(page, ", ") + `]}`
			})
			got, err := run(table, t.Context(), Sweep{Now: now, Until: time.Now().Add(time.Minute)})
			want := Swept{Scanned: 30, Stale: 30, Deleted: 25, Users: 1}
			if err != nil || !cmp.Equal(got, want) {
				t.Errorf("%s = %+v, %v, want %+v", name, got, err, want)
			}
		})
	}
}

// A busy table throttles nine attempts at each part before it answers.
func TestASweepOutlastsThrottledReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, scans := dynamotest.Config("http://table.invalid"), &busy{attempts: map[int]int{}}
		cfg.HTTPClient = scans
		got, err := New(dynamostore.New(cfg, "rateLimit").Table()).Sweep(t.Context(), Sweep{Now: now})
		if want := (Swept{Finished: true}); err != nil || !cmp.Equal(got, want) || len(scans.attempts) != Parts {
			t.Errorf("Sweep = %+v, %v after attempts at %d parts, want all %d read", got, err, len(scans.attempts), Parts)
		}
	})
}

// A busy is an aws.HTTPClient that answers only every tenth Scan of a part.
type busy struct {
	mu       sync.Mutex
	attempts map[int]int // by segment
}

func (b *busy) Do(r *http.Request) (*http.Response, error) {
	var scan struct{ Segment int }
	if err := json.NewDecoder(r.Body).Decode(&scan); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	status, body := http.StatusOK, `{}`
	if b.attempts[scan.Segment]++; b.attempts[scan.Segment]%10 != 0 {
		status, body = http.StatusBadRequest, `{"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}
