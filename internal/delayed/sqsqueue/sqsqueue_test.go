package sqsqueue_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/delayed"
	. "github.com/cric-talk/guards/internal/delayed/sqsqueue"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/sqstest"
)

var job = guard.Job{UserID: "server1", Activity: "update_member_role", RequestID: "r1", ReadyAt: 1_700_000_010_000, Enqueued: 1, Job: json.RawMessage(`{"role": "mod"}`)}

const stored = `{"userId":"server1","activity":"update_member_role","requestId":"r1","readyAt":1700000010000,"enqueued":1,"job":{"role":"mod"}}`

// open returns a queue behind a proxy, and the queue itself. Send has two
// seconds for all attempts. On a busy machine, a cold ElasticMQ takes longer or
// gets a job again, so the tests are tried again.
func open(t testing.TB) (*dynamotest.Proxy, *sqstest.Queue, *Queue) {
	t.Helper()
	proxy := dynamotest.NewProxyTo(t, sqstest.Endpoint(t))
	there := sqstest.NewQueue(t, nil)
	return proxy, there, New(dynamotest.Config(proxy.URL()), there.URL)
}

// JSON allows these characters, but SQS refuses some of them.
func TestSendTakesAnyJob(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) {
		_, there, queue := open(t)
		odd := job
		odd.Job = json.RawMessage("\"\x7f\ue000\ufffd\ufffe\uffff\U0001ffff\U0010ffff\\u0000\\uffff\\u001f\"")
		testkit.OK(t, queue.Send(t.Context(), odd, 0))
		var got guard.Job
		var want, text string
		messages := there.Take(1, 20*time.Second)
		if len(messages) != 1 || json.Unmarshal([]byte(messages[0].Body), &got) != nil {
			t.Fatalf("on the queue: %+v", messages)
		}
		if json.Unmarshal(odd.Job, &want) != nil || json.Unmarshal(got.Job, &text) != nil || text != want {
			t.Errorf("got %+q, want %+q", text, want)
		}
	})
}

func TestSendHoldsBackAtLeastTheDelay(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) {
		_, there, queue := open(t)
		const delay = 1100 * time.Millisecond
		began := time.Now()
		testkit.OK(t, queue.Send(t.Context(), job, delay))
		if n := there.Len(); n != 1 {
			t.Errorf("the queue has %d messages, want one", n)
		}
		if got := there.Take(1, 20*time.Second); len(got) != 1 || time.Since(began) < delay {
			t.Errorf("took %+v after %v, want it after %v", got, time.Since(began), delay)
		}
	})
}

func TestDelaySeconds(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]int32{
		-time.Hour: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 9*time.Second + 300*time.Millisecond: 10,
		15 * time.Minute: 900, 15*time.Minute + 1: 900, math.MaxInt64: 900,
	} {
		if got := DelaySeconds(delay); got != want {
			t.Errorf("DelaySeconds(%v) = %d, want %d", delay, got, want)
		}
	}
}

// After a send that may have failed, a copy follows, so the job is on the queue at
// least once.
func TestTemporaryFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range []dynamotest.Fault{
		dynamotest.ThrottlingException, dynamotest.Refuse, dynamotest.HangBefore, dynamotest.Status500, dynamotest.Status503,
		dynamotest.LoseResponse, dynamotest.Reset, dynamotest.HangAfter, dynamotest.Status500After, dynamotest.Truncate, dynamotest.Stall, dynamotest.Garbage,
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			testkit.Retry(t, func(t testing.TB) {
				proxy, there, queue := open(t)
				proxy.Fail(1, fault)
				testkit.OK(t, queue.Send(t.Context(), job, 0))
				want := 1
				if fault.Applied() {
					want = 2
				}
				got := there.Take(want, 20*time.Second)
				if len(got) != want || got[0].Body != stored || got[want-1].Body != stored || there.Len() != 0 {
					t.Errorf("on the queue: %+v and %d, want it %d times", got, there.Len(), want)
				}
			})
		})
	}
}

func TestSendRefusesAJobThatIsNotJSON(t *testing.T) {
	t.Parallel()
	if err := New(dynamotest.Config("http://127.0.0.1:1"), "q").Send(t.Context(), guard.Job{Job: json.RawMessage(`{`)}, 0); err == nil {
		t.Error("Send returns no error, want one")
	}
}

var _ delayed.Queue = (*Queue)(nil)
