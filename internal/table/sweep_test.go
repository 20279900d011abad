package table_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// now is when the sweeps of these tests run, in Unix seconds.
const now = 1_700_000_000

// A yard is a table to sweep, behind a proxy.
type yard struct {
	*DynamoDB
	proxy  *dynamotest.Proxy
	table  string
	client *dynamodb.Client // does not go through the proxy
	pad    string           // fill adds it to each item
}

// large makes an item so large that a page of 1 MB has about ten of them.
var large = strings.Repeat("x", 100_000)

func newYard(t testing.TB) yard {
	t.Helper()
	p := dynamotest.NewProxy(t)
	table := dynamotest.Table(t)
	return yard{New(dynamostore.New(dynamotest.Config(p.URL()), table).Table()), p, table, dynamotest.Client(t, dynamotest.Endpoint(t)), ""}
}

// fill adds n items for each of number users, which expire at this time; 0: never.
func (y yard) fill(t testing.TB, users string, number, n int, expires int64) {
	t.Helper()
	var batch []types.WriteRequest
	flush := func() {
		if len(batch) == 0 {
			return
		}
		testkit.Must(y.client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{y.table: batch}}))(t)
		batch = nil
	}
	for user := range number {
		for window := range n {
			item := y.key(fmt.Sprint(users, user), window)
			if expires != 0 {
				item["expiresAt"] = dynamostore.Number(expires)
			}
			if y.pad != "" {
				item["pad"] = dynamostore.Text(y.pad)
			}
			batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
			if len(batch) == 25 {
				flush()
			}
		}
	}
	flush()
}

func (yard) key(user string, window int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"userId":         dynamostore.Text(user),
		"activityWindow": dynamostore.Text("act#" + strconv.Itoa(window)),
	}
}

// count returns how many items are left.
func (y yard) count(t testing.TB) (n int32) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(y.client, &dynamodb.ScanInput{TableName: &y.table, Select: types.SelectCount})
	for pages.HasMorePages() {
		page := testkit.Must(pages.NextPage(t.Context()))(t)
		n += page.Count
	}
	return n
}

func (y yard) sweep(t testing.TB, s Sweep, want Swept) {
	t.Helper()
	got, err := y.Sweep(t.Context(), s)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("Sweep(%+v) = %+v, %v, want %+v", s, got, err, want)
	}
}

func TestSweepDeletesOnlyWhatHasExpired(t *testing.T) {
	y := newYard(t)
	y.fill(t, "gone", 800, 5, now-1)
	y.fill(t, "here", 100, 2, now)
	y.fill(t, " config", 1, 1, 0) // the project's own
	y.sweep(t, Sweep{Now: now, DryRun: true}, Swept{Scanned: 4201, Stale: 4000, Users: 900, Finished: true})
	if n := y.proxy.Counts()["BatchExecuteStatement"]; n > 0 {
		t.Errorf("a dry run sent %d deletes", n)
	}
	y.sweep(t, Sweep{Now: now}, Swept{Scanned: 4201, Stale: 4000, Deleted: 4000, Users: 900, Finished: true})
	y.sweep(t, Sweep{Now: now}, Swept{Scanned: 201, Users: 100, Finished: true})
	if n := y.count(t); n != 201 {
		t.Errorf("%d items are left, want the 200 of users and the one that never expires", n)
	}
	if got := y.proxy.Counts(); len(got) != 2 || got["BatchExecuteStatement"] > 4000/25+64*2 {
		t.Errorf("requests %v, want not many more than 160 deletes of 25 items", got)
	}
}

// The items of one user fill more than two pages of 1,000 items.
func TestSweepAndEraseReadEachPage(t *testing.T) {
	y := newYard(t)
	y.fill(t, "u", 1, 2500, now-1)
	all := Swept{Scanned: 2500, Stale: 2500, Users: 1, Finished: true}
	y.sweep(t, Sweep{Now: now, DryRun: true}, all)
	all.Deleted = 2500
	if got, err := y.Erase(t.Context(), "u0", Sweep{}); err != nil || !cmp.Equal(got, all) {
		t.Errorf("Erase = %+v, %v, want %+v", got, err, all)
	}
	if got := y.proxy.Counts(); got["Scan"] != 64+2 || got["Query"] != 3 {
		t.Errorf("requests %v, want two scans more than the 64 segments, and 3 queries", got)
	}
}

// In each item, an action is counted between the scan and the delete. The items
// then expire now, which is not before now.
func TestItemsThatAreUsedAgainSurviveASweep(t *testing.T) {
	y := newYard(t)
	y.fill(t, "u", 1, 20, now-1)
	y.proxy.Before("BatchExecuteStatement", func() { y.fill(t, "u", 1, 20, now) })
	y.sweep(t, Sweep{Now: now}, Swept{Scanned: 20, Stale: 20, Users: 1, Finished: true})
	if n := y.count(t); n != 20 {
		t.Errorf("%d items are left, want all 20", n)
	}
}

func TestSweepStopsInTimeAndLaterSweepsContinue(t *testing.T) {
	y := newYard(t)
	y.fill(t, "u", 400, 1, now-1)
	y.proxy.Do(func(string) dynamotest.Fault {
		time.Sleep(20 * time.Millisecond) // a table far away
		return dynamotest.Pass
	})
	var deleted int64
	runs := 0
	for ; deleted < 400 && runs < 100; runs++ {
		until := time.Now().Add(200 * time.Millisecond)
		got, err := y.Sweep(t.Context(), Sweep{Now: now, Until: until})
		if err != nil || got.Finished || time.Now().After(until.Add(5*time.Second)) {
			t.Fatalf("Sweep = %+v, %v, %v late, want an unfinished sweep that stops in time", got, err, time.Since(until))
		}
		deleted += got.Deleted
	}
	if n := y.count(t); n != 0 || runs < 2 {
		t.Errorf("%d items are left after %d sweeps", n, runs)
	}
}

// Subjects are counted by their names, and not as users. The key of a subject begins with
// the key of another one here, and with a space as the live limits' key does.
func TestSubjectsAreNoUsers(t *testing.T) {
	y := newYard(t)
	y.fill(t, "u", 3, 2, now)
	y.fill(t, " room r", 12, 5, now-1) // r1, r10 and r11 among them
	y.fill(t, " tenant t", 2, 1, now)
	y.fill(t, " config", 1, 1, 0)
	stats, err := y.Stats(t.Context(), now, nil, func(Stats, int) {})
	want := Stats{Users: 3, Subjects: Subjects{"room": 12, "tenant": 2}, Items: 68, Stale: 60, Activities: map[string]int64{"act": 3}}
	if diff := cmp.Diff(want, stats); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	y.sweep(t, Sweep{Now: now, DryRun: true}, Swept{Scanned: 69, Stale: 60, Users: 3, Subjects: Subjects{"room": 12, "tenant": 2}, Finished: true})
	one := Swept{Scanned: 5, Stale: 5, Subjects: Subjects{"room": 1}, Finished: true}
	for _, dryRun := range []bool{true, false} {
		if !dryRun {
			one.Deleted = 5
		}
		if got, err := y.Erase(t.Context(), " room r1", Sweep{DryRun: dryRun}); err != nil || !cmp.Equal(got, one) {
			t.Errorf("Erase = %+v, %v, want %+v", got, err, one)
		}
	}
	if n := y.count(t); n != 64 {
		t.Errorf("%d items are left, want all but 5", n)
	}
}

func TestErase(t *testing.T) {
	y := newYard(t)
	y.fill(t, "u", 12, 120, now+60) // includes u10 and u11, which begin with u1
	erase := func(dryRun bool, want Swept) {
		t.Helper()
		if got, err := y.Erase(t.Context(), "u1", Sweep{Now: now, DryRun: dryRun}); err != nil || !cmp.Equal(got, want) {
			t.Errorf("Erase = %+v, %v, want %+v", got, err, want)
		}
	}
	erase(true, Swept{Scanned: 120, Stale: 120, Users: 1, Finished: true})
	y.proxy.Fail(2, dynamotest.UnprocessedStatements)
	y.proxy.Fail(1, dynamotest.Throttle, "Query")
	erase(false, Swept{Scanned: 120, Stale: 120, Deleted: 120, Users: 1, Finished: true})
	erase(false, Swept{Finished: true})
	if n := y.count(t); n != 11*120 {
		t.Errorf("%d items are left, want those of the 11 others", n)
	}
}
