package dynamostore_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

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
		l = &ratelimit.Limiter{Store: l.Store} // its circuit breaker is closed
		if _, err := l.Decide(t.Context(), ratelimit.Reset, request("r1")); err == nil || p.Counts()["DeleteItem"] != 1 {
			t.Errorf("%s: requests are %v and the error of a reset is %v, want one request", fault, p.Counts(), err)
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
		l := &ratelimit.Limiter{Store: store, Timeout: time.Minute}
		d, err := l.Check(t.Context(), request("r1"))
		e, ok := errors.AsType[*ratelimit.StoreError](err)
		if !ok || e.What != want || e.Failure != ratelimit.Misconfigured || d.Requests != 1 {
			t.Errorf("Check = %+v, %v, want %q at the first attempt", d, err, want)
		}
	}
}
