package dynamostore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
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

// A scene is a user's item of one policy, which grows by one request after the
// other.
type scene struct {
	text     string
	activity string
	requests int
	every    time.Duration // between two requests
	counts   int64         // actions of each request; 0: 1
	one      bool          // everyday use: each write costs one unit with a user id of 36 characters

	// bytes is the formula of ADR 6, without the user id and the
	// ids.
	bytes func(request int) int
	// idBytes is what the ids of so many requests take.
	idBytes func(request int) int
}

// perWindow is the ids of a window's item, which keeps them all.
func perWindow(n int) int { return 6 * n }

// last20s returns what the ids of the requests of the last 21 to 28 s take,
// each with so many bytes. All requests come within one period of 7 s.
func last20s(each int) func(int) int {
	return func(n int) int { return 3 + each*n }
}

// one is what the id takes of a request that comes long after the last one.
func one(int) int { return 3 + 6 }

func constant(bytes int) func(int) int { return func(int) int { return bytes } }

var scenes = []scene{
	{"10/1m", "create_post", 10, 0, 0, true, constant(102 + 2*11), perWindow},
	{"60/1m", "create_room_message", 60, 0, 0, true, constant(102 + 2*19), perWindow},
	{"100/1m", "create_post", 100, 0, 0, true, constant(102 + 2*11), perWindow},
	{"bucket 1/5s keep 1h", "send_message", 9, 301_237 * time.Millisecond, 0, true, constant(79 + 12), one},
	{"bucket 200/1m", "send_message", 155, 0, 0, false, constant(79 + 12), last20s(6)},
	{"sliding 50/1h", "ingest", 50, 0, 0, true, constant(62 + 6), last20s(6)},
	{"reservoir 10/10s ahead 15m", "update_member_role", 55, 0, 0, false, constant(45 + 18), last20s(20)},
	{"log 100/12h", "pin", 110, 433_237 * time.Millisecond, 0, true, logBytes(1), one},
	{"log 100/12h", "pin", 10, 0, 10, false, logBytes(10), last20s(6)},
	{"lockout 5/15m for 30m", "sign_in", 5, 0, 0, true, constant(42 + 3 + 14 + 14 + 8), last20s(6)},
	{"minute: 10/1m, day: 200/1d", "create_post", 10, 0, 0, true, severalBytes, last20s(6)},
}

// logBytes returns the bytes of a log after requests of n actions each.
func logBytes(n int) func(int) int {
	return func(request int) int { return 41 + 3 + 9*min(100, n*request) }
}

// severalBytes is the keys, expiresAt and a stamp of 19 digits under each name.
func severalBytes(int) int {
	const keys, expires, count = 6 + 14 + 11, 9 + 6, 11
	return keys + expires + len("minute_s") + count + len("day_s") + count - 2
}

// leeway is how many bytes the trailing zeros of numbers can save, which
// DynamoDB does not store.
const leeway = 3

// Each write costs as many units as the formulas of ADR 6 say.
func TestWriteUnitsAreAsDocumented(t *testing.T) {
	lengths := testkit.Bound([]int{36}, []int{36, 69, 128})
	for _, sc := range scenes {
		for _, length := range lengths {
			t.Run(fmt.Sprintf("%s, %d times, user id of %d", sc.text, sc.requests, length), func(t *testing.T) {
				testUnits(t, sc, length)
			})
		}
	}
}

func testUnits(t *testing.T, sc scene, length int) {
	t.Helper()
	l, p := through(t)
	now := start.Add(12_345 * time.Millisecond)
	l.Now = func() time.Time { return now }
	r := request("")
	r.UserID, r.Activity, r.Policy = strings.Repeat("u", length), sc.activity, policy.Must(sc.text)
	r.Count = max(1, sc.counts)
	for i := range sc.requests {
		r.ID = fmt.Sprint(i)
		p.ResetCounts()
		d, err := l.Check(t.Context(), r)
		if err != nil || d.Limit == 0 || d.Wait > 0 && d.ReadyAt == 0 {
			t.Fatalf("Check = %+v, %v", d, err)
		}
		refused := float64(p.Counts()["UpdateItem"] - 1) // each counts as one unit
		size := sc.bytes(i+1) + sc.idBytes(i+1) + length
		least, most := math.Ceil(float64(size-leeway)/1024), math.Ceil(float64(size)/1024)
		if sc.one && length == 36 {
			most = 1
		}
		if units := p.WriteUnits() - refused; units < least || units > most || p.ReadUnits() != 0 {
			t.Errorf("request %d costs %v write and %v read units, want %v to %v for %d bytes", i+1, units, p.ReadUnits(), least, most, size)
		}
		now = now.Add(sc.every)
	}
}

// A user with 1,000 requests a minute needs at most three write units for each,
// whatever the kind of limit. The item has the ids of at most 467 requests.
func TestAThousandRequestsAMinuteCostAtMostThreeUnitsEach(t *testing.T) {
	testkit.Long.Need(t)
	for _, text := range []string{"1000/1m", "bucket 1000/1m", "sliding 1000/1m", "minute: 1000/1m, day: 999999/1d"} {
		t.Run(text, func(t *testing.T) {
			l, p := through(t)
			now := start
			l.Now = func() time.Time { return now }
			r := request("")
			r.UserID, r.Activity, r.Policy = strings.Repeat("u", 36), "create_room_message", policy.Must(text)
			for i := range 600 { // for 36 s
				r.ID = fmt.Sprint(i)
				p.ResetCounts()
				if d, err := l.Check(t.Context(), r); err != nil || !d.Allowed {
					t.Fatalf("Check = %+v, %v", d, err)
				}
				refused := float64(p.Counts()["UpdateItem"] - 1)
				if units := p.WriteUnits() - refused; units > 3 {
					t.Fatalf("request %d costs %v write units, want at most 3", i+1, units)
				}
				now = now.Add(60 * time.Millisecond)
			}
		})
	}
}

// A decision about a user and a room takes exactly twice the requests and units of one
// about the user alone, by each kind of limit. This holds for a check by an instance that
// knows nothing, later checks, a status and a release. Nothing is read first. A check that
// the user's own limit refuses costs the same as without a room.
func TestASubjectCostsExactlyTwice(t *testing.T) {
	for _, text := range []string{"3/1m", "bucket 3/3s keep 1h", "sliding 3/1h", "log 3/12h", "3/day in Europe/Berlin", "minute: 3/1m, day: 200/1d"} {
		t.Run(text, func(t *testing.T) {
			alone, both := costs(t, text, false), costs(t, text, true)
			for i, a := range alone {
				want := a
				if a.allowed || a.op != ratelimit.Check {
					want.requests, want.written, want.read = 2*a.requests, 2*a.written, 2*a.read
				}
				if both[i] != want {
					t.Errorf("step %d: a user costs %+v, and with a room %+v, want %+v", i, a, both[i], want)
				}
			}
			if later, refused := alone[1], alone[3]; later.requests != 1 || later.written != 1 || refused.allowed || refused.requests > 1 {
				t.Errorf("a later check costs %+v, want one request and one unit; a refusal %+v, want at most one", later, refused)
			}
		})
	}
}

// A bill is what a step costs.
type bill struct {
	op            ratelimit.Op
	allowed       bool
	requests      int
	written, read float64 // units
}

// costs returns the bill of each step of a user who reaches the limit, with or without a
// room that has the same limit.
func costs(t *testing.T, text string, room bool) (bills []bill) {
	t.Helper()
	l, p := through(t)
	now := start.Add(12_345 * time.Millisecond)
	l.Now, l.Memory = func() time.Time { return now }, ratelimit.NewMemory(1<<20)
	r := request("")
	r.UserID, r.Policy = strings.Repeat("u", 36), policy.Must(text)
	var at int64
	for i, op := range []ratelimit.Op{
		ratelimit.Check, ratelimit.Check, ratelimit.Check, ratelimit.Check, ratelimit.Status, ratelimit.Release, ratelimit.Check,
	} {
		p.ResetCounts()
		r.ID, r.At = fmt.Sprint(i), 0
		if op == ratelimit.Release {
			r.ID, r.At = "1", at
		}
		parts := []ratelimit.Part{{Request: r}}
		if room {
			in := r
			in.UserID, in.For = " room "+strings.Repeat("r", 30), r.UserID
			parts = append(parts, ratelimit.Part{Request: in, Subject: "room"})
		}
		d, err := l.DecideAll(t.Context(), op, parts, false)
		sent := 0
		for _, n := range p.Counts() {
			sent += n
		}
		if err != nil || sent != d.Requests {
			t.Fatalf("step %d: %+v, %v, and the table got %d requests", i, d, err, sent)
		}
		if i == 1 {
			at = d.At
		}
		bills = append(bills, bill{op, d.Allowed, sent, p.WriteUnits(), p.ReadUnits()})
		now = now.Add(10 * time.Millisecond)
	}
	return bills
}

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

// attribute returns a number of an item that is not part of its state.
func attribute(t testing.TB, table string, k ratelimit.Key, name string) (n int64) {
	t.Helper()
	out, err := dynamotest.Client(t, dynamotest.Endpoint(t)).GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: Key(k)})
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
