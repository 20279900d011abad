package dynamotest_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// planning returns a client of proxy whose requests follow the plans of their
// contexts.
func planning(t *testing.T, proxy *dynamotest.Proxy) *dynamodb.Client {
	t.Helper()
	cfg := testkit.Must(proxy.Config(t.Context()))(t)
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

func TestEachRequestHasTheFaultOfItsPlan(t *testing.T) {
	t.Parallel()
	c, proxy := newCounter(t), dynamotest.NewProxy(t)
	client := planning(t, proxy)
	one := &dynamotest.Plan{Faults: []dynamotest.Fault{dynamotest.LoseResponse, dynamotest.Pass, dynamotest.Throttle}}
	other := &dynamotest.Plan{Faults: []dynamotest.Fault{dynamotest.Status500}}
	for i, failed := range []bool{true, false, true, false} {
		if err := c.add(one.In(t.Context()), client); (err != nil) != failed {
			t.Errorf("request %d of one plan failed with %v", i, err)
		}
		if err := c.add(other.In(t.Context()), client); (err != nil) != (i == 0) {
			t.Errorf("request %d of the other plan failed with %v", i, err)
		}
	}
	if got := c.value(t); got != "6" || len(one.Sent()) != 4 || one.Sent()[2].Fault != dynamotest.Throttle || proxy.Counts()["UpdateItem"] != 8 {
		t.Errorf("the count is %s, one plan sent %d requests, all sent %v", got, len(one.Sent()), proxy.Counts())
	}
}

// The client gives up at once, and still the table performs the write.
func TestTheFateOfARequestIsCertainWhenItsCallReturns(t *testing.T) {
	t.Parallel()
	c, proxy := newCounter(t), dynamotest.NewProxy(t)
	client := planning(t, proxy)
	want := 0
	for _, fault := range []dynamotest.Fault{dynamotest.HangAfter, dynamotest.Stall, dynamotest.HangBefore, dynamotest.HangAfter} {
		plan := &dynamotest.Plan{Faults: []dynamotest.Fault{fault}}
		ctx, cancel := context.WithTimeout(plan.In(t.Context()), 100*time.Millisecond)
		if err := c.add(ctx, client); err == nil || ctx.Err() == nil {
			t.Errorf("%s: got %v, want an error at the deadline", fault, err)
		}
		cancel()
		if len(plan.Sent()) > 0 && fault.Applied() {
			want++
		}
	}
	patient := &dynamotest.Plan{Faults: []dynamotest.Fault{dynamotest.HangAfter}, Patience: time.Millisecond}
	var timeout net.Error
	if err := c.add(patient.In(t.Context()), client); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
	if got := c.value(t); got != strconv.Itoa(want+1) || want == 0 {
		t.Errorf("the count is %s, want %d", got, want+1)
	}
}

func TestALateRequestIsPerformedWhenItIsDelivered(t *testing.T) {
	t.Parallel()
	c, proxy := newCounter(t), dynamotest.NewProxy(t)
	client := planning(t, proxy)
	plan := &dynamotest.Plan{Faults: []dynamotest.Fault{dynamotest.Late}, Patience: time.Millisecond}
	if err := c.add(plan.In(t.Context()), client); err == nil || c.value(t) != "" {
		t.Errorf("got %v and the count %q, want no answer and no write", err, c.value(t))
	}
	if err := plan.Sent()[0].Deliver(); err != nil || c.value(t) != "1" {
		t.Errorf("delivered: %v, the count is %q, want 1", err, c.value(t))
	}
}
