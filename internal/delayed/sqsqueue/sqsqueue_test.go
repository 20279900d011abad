package sqsqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

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

func TestPermanentFaults(t *testing.T) {
	t.Parallel()
	for fault, attempts := range map[dynamotest.Fault]struct{ least, most int }{
		dynamotest.AccessDenied:        {1, 1},
		dynamotest.BadCredentials:      {1, 1},
		dynamotest.ThrottlingException: {6, 6},
		dynamotest.Refuse:              {2, 2},
		dynamotest.HangBefore:          {2, 2},
		dynamotest.LoseResponse:        {2, 2},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			testkit.Retry(t, func(t testing.TB) {
				proxy, _, queue := open(t)
				proxy.Fail(math.MaxInt, fault)
				began := time.Now()
				err := queue.Send(t.Context(), job, 0)
				if took := time.Since(began); err == nil || took > Timeout+5*time.Second {
					t.Errorf("%v after %v, want an error within %v", err, took, Timeout)
				}
				if n := proxy.Counts()["SendMessage"]; n < attempts.least || n > attempts.most {
					t.Errorf("%d attempts, want %+v", n, attempts)
				}
				if err != nil && strings.Contains(err.Error(), "mod") {
					t.Errorf("the job in the error: %v", err)
				}
			})
		})
	}
}

func TestNoSuchQueue(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) {
		proxy := dynamotest.NewProxyTo(t, sqstest.Endpoint(t))
		err := New(dynamotest.Config(proxy.URL()), sqstest.Endpoint(t)+"/000000000000/none").Send(t.Context(), job, 0)
		if _, ok := errors.AsType[smithy.APIError](err); !ok || proxy.Counts()["SendMessage"] != 1 {
			t.Errorf("%v after %v, want an answer after one attempt", err, proxy.Counts())
		}
	})
}

// Send ends 100 ms before the deadline, and after 2 s. Lambda lets a function work for
// longer, but its caller waits.
func TestSendEndsInTime(t *testing.T) {
	for deadline, most := range map[time.Duration]time.Duration{600 * time.Millisecond: 500 * time.Millisecond, 10 * time.Second: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			silent := &hanging{}
			cfg := dynamotest.Config("http://nowhere.invalid")
			cfg.HTTPClient = silent
			queue := New(cfg, "http://nowhere.invalid/q")
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			began := time.Now()
			if err := queue.Send(ctx, job, 0); err == nil || time.Since(began) > most {
				t.Errorf("%v after %v of %v, want an error within %v", err, time.Since(began), deadline, most)
			}
			cancel()
			before := silent.requests.Load()
			err := queue.Send(ctx, job, 0)
			if more := silent.requests.Load() - before; !errors.Is(err, context.Canceled) || more != 0 || before == 0 {
				t.Errorf("%v after %d requests and %d more, want none after the deadline", err, before, more)
			}
		})
	}
}

// hanging is an aws.HTTPClient that never gets an answer.
type hanging struct{ requests atomic.Int64 }

func (h *hanging) Do(r *http.Request) (*http.Response, error) {
	h.requests.Add(1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestSendRefusesAJobThatIsNotJSON(t *testing.T) {
	t.Parallel()
	if err := New(dynamotest.Config("http://127.0.0.1:1"), "q").Send(t.Context(), guard.Job{Job: json.RawMessage(`{`)}, 0); err == nil {
		t.Error("Send returns no error, want one")
	}
}

var _ delayed.Queue = (*Queue)(nil)
