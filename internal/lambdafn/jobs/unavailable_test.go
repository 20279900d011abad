package jobs_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

func TestQueueUnavailable(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // the function keeps back 100 ms of its time
		r := newRig(t, 60, 10)
		i := r.start("jobs-guard", "ON_LIMIT=error")
		warmUp(t, i)
		inOneWindow(8 * time.Second)
		for n := range 10 {
			ask(t, i, request(canary, n, ""))
		}
		r.sqs.Fail(math.MaxInt, dynamotest.HangBefore)
		const id = `, "requestId": "job-10"`
		deadline := 1500 * time.Millisecond
		got, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(request(canary, 10, id)), Timeout: deadline})
		if err != nil || got.ErrorType != "Unavailable" || got.ErrorMessage != "the job could not be put on the delayed queue" || got.Duration > deadline {
			t.Errorf("%s %v, want Unavailable before the deadline", got, err)
		}
		if !strings.Contains(i.Logs(), "job not delayed") {
			t.Errorf("the log does not mention it:\n%s", i.Logs())
		}
		r.sqs.Heal()
		a, again := ask(t, i, request(canary, 10, id))
		if a.Reason != "delayed" || a.Enqueued != 1 || r.delayed.Len() != 1 {
			t.Errorf("asked again: %s, and %d on the queue; want the first place, and 1", again, r.delayed.Len())
		}
	})
}

func TestPoisonGoesToTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // the queue delivers again what is not handled within a second
		r := newRig(t, 1, 2)
		i := r.start("delayed-jobs")
		r.feed(i)
		good := message(t, canary, 1, starts(thisWindow()-100), 1)
		r.delayed.Send(`{"userId": "` + canary + `"}`)
		r.delayed.Send(good)
		r.delayed.Send("payload")
		if got := r.ready.Take(1, 20*time.Second); len(got) != 1 || got[0].Body != good {
			t.Errorf("on the ready queue: %+v, want the good one", got)
		}
		if got := r.dead.Take(2, 20*time.Second); len(got) != 2 {
			t.Errorf("on the dead-letter queue: %+v, want two", got)
		}
		if n := strings.Count(i.Logs(), "invalid job"); n < 2 || n > 4 || r.delayed.Len() != 0 {
			t.Errorf("%d lines of log on two messages of two deliveries, %d left", n, r.delayed.Len())
		}
	})
}

func TestReadyQueueUnreachable(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // a job must be received in its window, and SQS must answer within 2 s
		r := newRig(t, 1, 100)
		none := r.start("delayed-jobs", "READY_QUEUE_URL="+r.ready.URL+"-none")
		none.Ready(t)
		inOneWindow(6 * time.Second)
		onTime, early := message(t, canary, 0, starts(thisWindow()), 1), message(t, canary, 1, starts(thisWindow()+1), 1)
		if failed := r.work(none, onTime, early); failed != "m0" || r.delayed.Len() != 1 {
			t.Errorf("failed: %q, on the delayed queue %d; want m0, and the early one put back", failed, r.delayed.Len())
		}

		i := r.start("delayed-jobs")
		r.sqs.Fail(math.MaxInt, dynamotest.Refuse)
		began := time.Now()
		r.delayed.Send(message(t, canary, 2, starts(thisWindow()-100), 1))
		r.feed(i)
		untilLogged(t, i, "job not passed on", 1)
		r.sqs.Heal()
		for by := began.Add(time.Minute); ; {
			got := r.ready.Take(1, time.Until(by))
			if len(got) == 0 {
				t.Fatal("the job never came after the queue was back")
			}
			if _, n := parse(t, got[0].Body); n == 2 { // the early one may come first
				return
			}
		}
	})
}

// An outage of the table is an error of a late job, whatever ON_OUTAGE says.
func TestTableUnreachable(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // a job must be received in its window, and SQS must answer within 2 s
		r := newRig(t, 1, 100)
		i := r.start("delayed-jobs", "DECISION_TIMEOUT=300ms", "ON_OUTAGE=allow")
		i.Ready(t)
		inOneWindow(8 * time.Second)
		r.dynamo.Fail(math.MaxInt, dynamotest.Refuse)
		onTime, late := message(t, canary, 0, starts(thisWindow()), 1), message(t, canary, 1, starts(thisWindow()-100), 1)
		if failed := r.work(i, onTime, late); failed != "m1" {
			t.Errorf("failed: %q, want the late one, which needs the table", failed)
		}
		if got := r.ready.Take(1, 20*time.Second); len(got) != 1 || got[0].Body != onTime {
			t.Errorf("on the ready queue: %+v, want the one on time", got)
		}
	})
}
