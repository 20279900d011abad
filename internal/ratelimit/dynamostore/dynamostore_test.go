package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) ratelimit.Store {
		t.Helper()
		return New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t))
	})
}

// through makes a limiter on a table of its own, behind a proxy.
func through(t testing.TB) (*ratelimit.Limiter, *dynamotest.Proxy) {
	t.Helper()
	p := dynamotest.NewProxy(t)
	store := New(dynamotest.Config(p.URL()), dynamotest.Table(t))
	return &ratelimit.Limiter{Store: store, Timeout: 5 * time.Second, Now: func() time.Time { return start }}, p
}

var start = time.UnixMilli(1_700_000_040_000)

func request(id string) ratelimit.Request {
	return ratelimit.Request{
		UserID: "u1", Activity: "act", Count: 1, ID: id,
		Policy: ratelimit.FixedWindow{Limit: 10, Window: time.Minute},
	}
}

// The attributes are those that operators and cleanup rely on.
func TestItem(t *testing.T) {
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
	if diff := cmp.Diff(want, page.Items[0], cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberBS{})); diff != "" {
		t.Errorf("the item (-want +got):\n%s", diff)
	}
}

func TestExactlyTheLimitUnderARace(t *testing.T) {
	l, p := through(t)
	var mu sync.Mutex
	allowed := 0
	var wg sync.WaitGroup
	const callers = 24
	for i := range callers {
		wg.Go(func() {
			d, err := l.Check(t.Context(), request(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if d.Allowed {
				allowed++
			}
		})
	}
	wg.Wait()
	if allowed != 10 {
		t.Errorf("%d allowed, want 10", allowed)
	}
	if got := p.Counts(); got["UpdateItem"] != callers || len(got) != 1 {
		t.Errorf("requests %v, want one UpdateItem for each decision", got)
	}
}

// A window of up to 105 requests costs one write unit a decision, also with a
// user id of full length.
func TestOneWriteUnit(t *testing.T) {
	l, p := through(t)
	r := request("")
	r.UserID, r.Activity = strings.Repeat("u", 36), "create_room_message"
	r.Policy = ratelimit.FixedWindow{Limit: 60, Window: time.Minute}
	for i := range 60 {
		r.ID = fmt.Sprint(i)
		if d, err := l.Check(t.Context(), r); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	if units := p.WriteUnits(); units != 60 || p.ReadUnits() != 0 {
		t.Errorf("60 decisions cost %v write and %v read units, want 60 and 0", units, p.ReadUnits())
	}
}

// Whatever happens on the way, a decision is counted once and told so.
func TestFaults(t *testing.T) {
	decided := map[dynamotest.Fault]string{
		dynamotest.AccessDenied:   "access to the table is denied",
		dynamotest.BadCredentials: "access to the table is denied",
	}
	for _, fault := range dynamotest.Faults() {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for n, timeout := range map[int]time.Duration{1: time.Second, 5: 5 * time.Second} {
				l, p := through(t)
				l.Timeout = timeout
				p.Fail(n, fault)
				d, err := l.Check(t.Context(), request("r1"))
				if what := decided[fault]; what != "" {
					if e, ok := errors.AsType[*ratelimit.StoreError](err); !ok || e.What != what || d.Requests != 1 {
						t.Errorf("%+v, %v, want %s after one request", d, err, what)
					}
					continue
				}
				if err != nil || d.Reason != ratelimit.OK || d.Used != 1 || d.Requests != n+1 {
					t.Errorf("%d times: %+v, %v, want ok, one counted, %d requests", n, d, err, n+1)
				}
				again, err := l.Status(t.Context(), request("r2"))
				if err != nil || again.Used != 1 {
					t.Errorf("%d times: then %+v, %v, want one counted", n, again, err)
				}
			}
		})
	}
}

func TestFaultsOfReleaseAndReset(t *testing.T) {
	for _, fault := range []dynamotest.Fault{dynamotest.LoseResponse, dynamotest.Throttle, dynamotest.Status500} {
		t.Run(string(fault), func(t *testing.T) {
			l, p := through(t)
			r := request("r1")
			r.Count = 4
			d, err := l.Check(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Check(t.Context(), request("r2")); err != nil {
				t.Fatal(err)
			}
			r.At = d.At
			for range 2 {
				p.Fail(1, fault)
				if d, err := l.Release(t.Context(), r); err != nil || d.Used != 1 || d.Reason != ratelimit.OK {
					t.Errorf("Release = %+v, %v, want the one of another request left", d, err)
				}
			}
			p.Fail(1, fault)
			if d, err := l.Reset(t.Context(), r); err != nil || d.Used != 0 {
				t.Errorf("Reset = %+v, %v", d, err)
			}
		})
	}
}

// An outage is answered in time, and names what failed without saying where.
func TestOutage(t *testing.T) {
	for fault, what := range map[dynamotest.Fault]string{
		dynamotest.Refuse:     "the table did not answer in time",
		dynamotest.HangBefore: "the table did not answer in time",
		dynamotest.Throttle:   "the table is throttled",
		dynamotest.Status500:  "the table failed",
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			l, p := through(t)
			l.Timeout = 300 * time.Millisecond
			p.Fail(math.MaxInt, fault)
			began := time.Now()
			d, err := l.Check(t.Context(), request("r1"))
			if e, ok := errors.AsType[*ratelimit.StoreError](err); !ok || e.What != what {
				t.Errorf("%+v, %v, want %q", d, err, what)
			}
			if took := time.Since(began); took > l.Timeout+5*time.Second { // what a busy machine adds
				t.Errorf("it took %v", took)
			}
		})
	}
}

// No setting of the environment turns the SDK's own retryer on.
func TestTheSDKNeverRetries(t *testing.T) {
	p := dynamotest.NewProxy(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "5")
	t.Setenv("AWS_RETRY_MODE", "adaptive")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", p.URL())
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &ratelimit.Limiter{Store: New(cfg, "rateLimit")} // without a Timeout: one attempt
	for _, fault := range []dynamotest.Fault{dynamotest.Throttle, dynamotest.Status500, dynamotest.LoseResponse} {
		p.ResetCounts()
		p.Fail(math.MaxInt, fault)
		if _, err := l.Check(t.Context(), request("r1")); err == nil || p.Counts()["UpdateItem"] != 1 {
			t.Errorf("%s: %v requests, error %v, want one", fault, p.Counts(), err)
		}
		p.Heal()
	}
}

func TestWhatIsNotSent(t *testing.T) {
	endpoint := dynamotest.Endpoint(t)
	noTable := New(dynamotest.Config(endpoint), "no-such-table")
	cfg := dynamotest.Config(endpoint)
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("none anywhere")
	})
	noCredentials := New(cfg, "rateLimit")
	cfg = dynamotest.Config(endpoint)
	cfg.Region, cfg.BaseEndpoint = "", nil
	noRegion := New(cfg, "rateLimit")
	const incomplete = "the table could not be asked: the AWS settings (credentials, region, endpoint) lack something"
	for store, want := range map[*Store]string{noTable: "the table does not exist", noRegion: incomplete, noCredentials: incomplete} {
		l := &ratelimit.Limiter{Store: store, Timeout: time.Second}
		d, err := l.Check(t.Context(), request("r1"))
		e, ok := errors.AsType[*ratelimit.StoreError](err)
		if !ok || e.What != want || e.Failure != ratelimit.Rejected || d.Requests != 1 {
			t.Errorf("%+v, %v, want %q at the first attempt", d, err, want)
		}
	}
}
