package dynamostore_test

import (
	"fmt"
	"sync/atomic"
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

// Operators and the cleanup function rely on these attributes.
func TestAWindowsItemHasTheDocumentedAttributes(t *testing.T) {
	table := dynamotest.Table(t)
	endpoint := dynamotest.Endpoint(t)
	l := &ratelimit.Limiter{Store: New(dynamotest.Config(endpoint), table), Now: func() time.Time { return start }}
	r := request("r1")
	r.Count = 3
	if _, err := l.Check(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	page, err := dynamotest.Client(t, endpoint).Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil || len(page.Items) != 1 {
		t.Fatal(page, err)
	}
	id := ratelimit.NewID("r1")
	want := map[string]types.AttributeValue{
		"userId":         &types.AttributeValueMemberS{Value: "u1"},
		"activityWindow": &types.AttributeValueMemberS{Value: "act#28333334"},
		"activity":       &types.AttributeValueMemberS{Value: "act"},
		"windowKey":      &types.AttributeValueMemberN{Value: "28333334"},
		"activityCount":  &types.AttributeValueMemberN{Value: "3"},
		"createdAt":      &types.AttributeValueMemberN{Value: "1700000040000"},
		"expiresAt":      &types.AttributeValueMemberN{Value: "1700000220"},
		"ids":            &types.AttributeValueMemberBS{Value: [][]byte{id[:]}},
	}
	unexported := cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberBS{})
	if diff := cmp.Diff(want, page.Items[0], unexported); diff != "" {
		t.Errorf("the item (-want +got):\n%s", diff)
	}
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

func TestConcurrentCallersGetExactlyTheLimit(t *testing.T) {
	l, p := through(t)
	const callers = 24
	var allowed atomic.Int64
	done := make(chan error, callers)
	for i := range callers {
		go func() {
			d, err := l.Check(t.Context(), request(fmt.Sprint(i)))
			if d.Allowed {
				allowed.Add(1)
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if allowed.Load() != 10 {
		t.Errorf("%d callers are allowed, want 10", allowed.Load())
	}
	if got := p.Counts(); got["UpdateItem"] != callers || len(got) != 1 {
		t.Errorf("requests are %v, want one UpdateItem for each decision", got)
	}
}

// The longest user id and the longest activity are keys like any other.
func TestUserIDsOf128CharactersAreKeys(t *testing.T) {
	l, p := through(t)
	last := request("r1")
	last.UserID, last.Activity = fmt.Sprintf("%0128d", 1), fmt.Sprintf("%036d", 1)
	first := last
	first.UserID = "1" + last.UserID[1:]
	for _, r := range []ratelimit.Request{last, first} {
		for used, id := range []string{"r1", "r2"} {
			r.ID = id
			d, err := l.Check(t.Context(), r)
			if err != nil || d.Used != int64(used+1) {
				t.Fatalf("user %s...%s: check %s = %+v, %v, want %d used", r.UserID[:1], r.UserID[127:], id, d, err, used+1)
			}
			if id == "r1" {
				continue
			}
			r.At = d.At
			if d, err := l.Decide(t.Context(), ratelimit.Release, r); err != nil || d.Used != 1 {
				t.Errorf("Release = %+v, %v, want 1 used", d, err)
			}
			if d, err := l.Decide(t.Context(), ratelimit.Status, r); err != nil || d.Used != 1 {
				t.Errorf("Status = %+v, %v, want 1 used", d, err)
			}
		}
	}
	if d, err := l.Decide(t.Context(), ratelimit.Reset, last); err != nil || d.Used != 0 {
		t.Errorf("Reset = %+v, %v, want 0 used", d, err)
	}
	if d, err := l.Decide(t.Context(), ratelimit.Status, first); err != nil || d.Used != 1 {
		t.Errorf("after the reset of another user, Status = %+v, %v, want 1 used", d, err)
	}
	if units := p.WriteUnits(); units != 7 {
		t.Errorf("4 checks, 2 releases and a reset cost %v write units, want 7", units)
	}
}
