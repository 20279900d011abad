package dynamostore_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// Whatever happens on the way, a check is counted once, and its answer is ok.
func TestACheckIsCountedOnceInSpiteOfEachFault(t *testing.T) {
	denied := map[dynamotest.Fault]string{
		dynamotest.AccessDenied:   "access to the table is denied",
		dynamotest.BadCredentials: "access to the table is denied",
	}
	for _, fault := range dynamotest.Faults() {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for n, timeout := range map[int]time.Duration{1: 3 * time.Second, 5: 6 * time.Second} {
				l, p := through(t)
				l.Timeout = timeout
				p.Fail(n, fault)
				d, err := l.Check(t.Context(), request("r1"))
				if what := denied[fault]; what != "" {
					if e, ok := errors.AsType[*ratelimit.StoreError](err); !ok || e.What != what || d.Requests != 1 {
						t.Errorf("Check = %+v, %v, want %q after one request", d, err, what)
					}
					continue
				}
				if err != nil || d.Reason != ratelimit.OK || d.Used != 1 || d.Requests != n+1 {
					t.Errorf("after %d faults Check = %+v, %v, want ok, one counted, %d requests", n, d, err, n+1)
				}
				again, err := l.Status(t.Context(), request("r2"))
				if err != nil || again.Used != 1 {
					t.Errorf("after %d faults Status = %+v, %v, want one counted", n, again, err)
				}
			}
		})
	}
}

func TestAReleaseGivesBackOnceInSpiteOfAFault(t *testing.T) {
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
				p.Fail(1, fault, "UpdateItem")
				p.Fail(1, fault, "GetItem")
				if d, err := l.Release(t.Context(), r); err != nil || d.Used != 1 || d.Reason != ratelimit.OK {
					t.Errorf("Release = %+v, %v, want one action left, which another request took", d, err)
				}
				p.Heal()
			}
		})
	}
}

// A second delete could remove what was counted since the first one.
func TestAResetIsSentAgainOnlyIfItWasNotApplied(t *testing.T) {
	for fault, again := range map[dynamotest.Fault]bool{
		dynamotest.Throttle: true, dynamotest.LoseResponse: false, dynamotest.Status500: false,
	} {
		t.Run(string(fault), func(t *testing.T) {
			l, p := through(t)
			if _, err := l.Check(t.Context(), request("r1")); err != nil {
				t.Fatal(err)
			}
			p.Fail(1, fault)
			d, err := l.Reset(t.Context(), request("r2"))
			if again && (err != nil || d.Used != 0 || d.Requests != 2) {
				t.Errorf("Reset = %+v, %v, want a second request", d, err)
			}
			if e, ok := errors.AsType[*ratelimit.StoreError](err); !again && (!ok || e.Failure != ratelimit.Unknown || d.Requests != 1) {
				t.Errorf("Reset = %+v, %v, want an unknown outcome after one request", d, err)
			}
		})
	}
}

func TestAnOutageIsAnsweredInTimeAndNamesNoAddress(t *testing.T) {
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
				t.Errorf("Check = %+v, %v, want %q", d, err, what)
			}
			if took := time.Since(began); took > l.Timeout+5*time.Second { // a busy machine may add so much
				t.Errorf("it took %v, want about %v", took, l.Timeout)
			}
		})
	}
}

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
	for _, fault := range []dynamotest.Fault{dynamotest.Throttle, dynamotest.Status500, dynamotest.LoseResponse} {
		l := &ratelimit.Limiter{Store: New(cfg, "rateLimit")} // without a Timeout: one attempt
		p.ResetCounts()
		p.Fail(math.MaxInt, fault)
		if _, err := l.Check(t.Context(), request("r1")); err == nil || p.Counts()["UpdateItem"] != 1 {
			t.Errorf("%s: requests are %v and the error is %v, want one request", fault, p.Counts(), err)
		}
		p.Heal()
	}
}

func TestIncompleteSettingsAreRejectedAtTheFirstAttempt(t *testing.T) {
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
	const incomplete = "the table could not be reached: the AWS settings (credentials, region or endpoint) are incomplete"
	for store, want := range map[*Store]string{noTable: "the table does not exist", noRegion: incomplete, noCredentials: incomplete} {
		l := &ratelimit.Limiter{Store: store, Timeout: time.Second}
		d, err := l.Check(t.Context(), request("r1"))
		e, ok := errors.AsType[*ratelimit.StoreError](err)
		if !ok || e.What != want || e.Failure != ratelimit.Rejected || d.Requests != 1 {
			t.Errorf("Check = %+v, %v, want %q at the first attempt", d, err, want)
		}
	}
}
