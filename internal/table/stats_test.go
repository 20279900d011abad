package table_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// Stats counts a real table exactly, although the items of some users fill more than a page.
func TestStats(t *testing.T) {
	y := newYard(t)
	y.fill(t, "gone", 30, 2, now-1)
	y.fill(t, "here", 20, 3, now)
	y.fill(t, " config", 1, 1, 0)
	for _, window := range []string{"other#1", "other#2"} {
		item := y.key("here0", 1)
		item["activityWindow"] = dynamostore.Text(window)
		testkit.Must(y.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &y.table, Item: item}))(t)
	}
	y.pad = large
	y.fill(t, "many", 4, 25, now)
	var items []int64
	var parts []int
	got, err := y.Stats(t.Context(), now, nil, func(s Stats, n int) {
		items, parts = append(items, s.Items), append(parts, n)
	})
	want := Stats{Users: 54, Items: 222, Stale: 60, Activities: map[string]int64{"act": 54, "other": 1}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if !slices.IsSorted(items) || !slices.IsSorted(parts) || items[len(items)-1] != 222 || parts[len(parts)-1] != Parts {
		t.Errorf("progress reports %d items and %d parts, want growing numbers up to 222 and %d", items, parts, Parts)
	}
	if least := Parts + 4*2; len(parts) < least {
		t.Errorf("%d reports of progress, want at least %d: one for each part, and two for further pages of four users", len(parts), least)
	}
}

// Ten times the items need no more memory. The test measures the memory in use
// after a page. Pages have the same size in both tables.
func TestStatsMemoryIsFlat(t *testing.T) {
	var most [2]int64
	for i, users := range []int{5_000, 50_000} {
		pages := 0
		before := testkit.HeapInUse()
		got, err := over(crowd(users)).Stats(t.Context(), now, nil, func(Stats, int) {
			if pages++; pages%25 == 0 {
				most[i] = max(most[i], testkit.HeapInUse())
			}
		})
		most[i] -= min(before, most[i])
		want := Stats{Users: int64(users), Items: int64(2 * users), Activities: map[string]int64{"act": int64(users)}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v, (-want +got):\n%s", err, diff)
		}
	}
	t.Logf("at most %d KB for 10,000 items, %d KB for 100,000", most[0]>>10, most[1]>>10)
	const noise = 512 << 10 // a set of all users would need several times as much
	if most[1] > most[0]+noise {
		t.Errorf("%d bytes for 10,000 items, %d for 100,000, want about as many", most[0], most[1])
	}
}

// A crowd answers Scans of a table with so many users. Each user has two items, and each
// page has 50 items.
func crowd(users int) dynamotest.Wire {
	item := func(user, window int) string {
		return fmt.Sprintf(`{"userId": {"S": "%d"}, "activityWindow": {"S": "act#%d"}, "expiresAt": {"N": "%d"}}`, user, window, now)
	}
	return func(_ string, scan map[string]any) string {
		user := int(scan["Segment"].(float64))
		if last, ok := scan["ExclusiveStartKey"].(map[string]any); ok {
			n, _ := strconv.Atoi(last["userId"].(map[string]any)["S"].(string))
			user = n + Parts
		}
		var items []string
		for ; user < users && len(items) < 50; user += Parts {
			items = append(items, item(user, 0), item(user, 1))
		}
		body := `{"Items": [` + strings.Join(items, ", ") + `]`
		if user < users {
			body += `, "LastEvaluatedKey": ` + item(user-Parts, 1)
		}
		return body + "}"
	}
}
