package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
	"github.com/cric-talk/guards/internal/testkit/sqstest"
)

const (
	canary = "canary-group-4711"
	window = 10 * time.Second // of the limit of jobs-guard
)

// A rig is the part of the stack that handles jobs: queues, and a table behind a
// proxy. The deployed binaries run on it.
type rig struct {
	t                    testing.TB
	table                string
	dynamo               *dynamotest.Proxy
	delayed, ready, dead *sqstest.Queue
}

// newRig returns a rig. visibility is the delayed queue's visibility timeout in
// seconds. The queue delivers a message at most received times.
func newRig(t testing.TB, visibility, received int) *rig {
	t.Helper()
	r := &rig{
		t: t, table: dynamotest.Table(t), dynamo: dynamotest.NewProxy(t),
		ready: sqstest.NewQueue(t, nil), dead: sqstest.NewQueue(t, nil),
	}
	r.delayed = sqstest.NewQueue(t, map[string]string{
		"VisibilityTimeout": fmt.Sprint(visibility), "RedrivePolicy": r.dead.Redrive(received),
	})
	return r
}

// start starts an instance of a function. When the test ends, it checks that
// the log contains neither a user id nor a job.
func (r *rig) start(function string, env ...string) *lambdatest.Instance {
	r.t.Helper()
	env = append([]string{
		"TABLE_NAME=" + r.table, "AWS_ENDPOINT_URL_DYNAMODB=" + r.dynamo.URL(), "AWS_ENDPOINT_URL_SQS=" + sqstest.Endpoint(r.t),
		"DELAYED_QUEUE_URL=" + r.delayed.URL, "READY_QUEUE_URL=" + r.ready.URL,
		"DECISION_TIMEOUT=5s", // so that a slow test machine causes no outage
	}, env...)
	i := lambdatest.Start(r.t, lambdatest.Build(r.t, "./functions/"+function), env...)
	r.t.Cleanup(func() {
		if log := i.Logs(); strings.Contains(log, canary) || strings.Contains(log, "payload") {
			r.t.Errorf("a user id or a job in the log of %s:\n%s", function, log)
		}
	})
	return i
}

// feed delivers the delayed queue's messages to the function until the test
// ends, as Lambda's event source does.
func (r *rig) feed(i *lambdatest.Instance) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		r.delayed.Feed(ctx, func(ctx context.Context, payload []byte) ([]byte, error) {
			got, err := i.Do(ctx, lambdatest.Invocation{Payload: payload, Timeout: 10 * time.Second})
			if err == nil && got.ErrorType != "" {
				err = errors.New(got.ErrorType)
			}
			return got.Payload, err
		})
	})
	r.t.Cleanup(func() { cancel(); wg.Wait() })
}

// work delivers messages m0, m1, ... to the function once, and returns the ids
// of those that failed.
func (r *rig) work(i *lambdatest.Instance, bodies ...string) string {
	r.t.Helper()
	got := i.Invoke(r.t, string(sqstest.Event(r.t, bodies...)))
	if got.ErrorType != "" {
		r.t.Fatal(got)
	}
	return sqstest.Failed(r.t, got.Payload)
}

type answer struct {
	Allowed   bool
	Reason    string
	ReadyAt   int64
	Enqueued  int64
	WindowKey int64
	RequestID string
}

func ask(t testing.TB, i *lambdatest.Instance, payload string) (a answer, r lambdatest.Result) {
	t.Helper()
	r = i.Invoke(t, payload)
	if r.ErrorType == "" {
		if err := json.Unmarshal(r.Payload, &a); err != nil {
			t.Fatalf("%v: %s", err, r.Payload)
		}
	}
	return a, r
}

// request returns an event for the group's job number n.
func request(n int) string {
	return fmt.Sprintf(`{"userId": %q, "activity": "update_member_role", "job": {"payload": %d}}`, canary, n)
}

// message returns the message for a job with its place.
func message(t testing.TB, group string, n int, readyAt, enqueued int64) string {
	t.Helper()
	return messageOf(t, group, fmt.Sprintf("job-%d-%d", readyAt, enqueued), n, readyAt, enqueued)
}

// messageOf returns the message for the job of a request.
func messageOf(t testing.TB, group, requestID string, n int, readyAt, enqueued int64) string {
	t.Helper()
	body := testkit.Must(delayed.Body(guard.Job{
		UserID: group, Activity: "update_member_role", RequestID: requestID, ReadyAt: readyAt, Enqueued: enqueued,
		Job: json.RawMessage(fmt.Sprintf(`{"payload":%d}`, n)),
	}))(t)
	return body
}

// key returns the window of a time in Unix milliseconds.
func key(millis int64) int64 { return millis / window.Milliseconds() }

// starts returns when a window starts, in Unix milliseconds.
func starts(key int64) int64 { return key * window.Milliseconds() }

func thisWindow() int64 { return key(time.Now().UnixMilli()) }

// warmUp waits until the instance has started, and opens its connection to the
// table.
func warmUp(t testing.TB, i *lambdatest.Instance) {
	t.Helper()
	ask(t, i, `{"userId": "other", "activity": "update_member_role", "op": "status"}`)
}
