package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestDelayedJobsGoOnTheQueue(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // eleven jobs must fit into one window, and SQS must answer within 2 s
		r := newRig(t, 60, 10)
		i := r.start("jobs-guard")
		warmUp(t, i)
		inOneWindow(8 * time.Second)
		for n := range 10 {
			if a, _ := ask(t, i, request(canary, n, "")); a.Reason != "ok" {
				t.Fatalf("job %d: %+v", n, a)
			}
		}
		if n := r.delayed.Len(); n != 0 {
			t.Errorf("%d allowed jobs are on the delayed queue, want none", n)
		}
		a, got := ask(t, i, request(canary, 10, ""))
		if a.Allowed || a.Reason != "delayed" || a.ReadyAt != starts(a.WindowKey+1) || a.Enqueued != 1 {
			t.Fatalf("%s", got)
		}
		messages := r.delayed.Take(1, 20*time.Second)
		if len(messages) != 1 || messages[0].Body != messageOf(t, canary, a.RequestID, 10, a.ReadyAt, 1) {
			t.Fatalf("on the delayed queue: %+v", messages)
		}
		// SQS counts whole seconds, and a job that comes early has to wait again.
		if late := time.Now().UnixMilli() - a.ReadyAt; late < 0 {
			t.Errorf("it came %d ms before its time", -late)
		}
	})
}

func TestWithoutAQueueThereAreNoJobs(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // eleven jobs must fit into one window
		r := newRig(t, 60, 10)
		i := r.start("jobs-guard", "DELAYED_QUEUE_URL=")
		if _, got := ask(t, i, request(canary, 0, "")); got.ErrorType != "ValidationError" || !strings.HasPrefix(got.ErrorMessage, "job ") {
			t.Errorf("%s, want a ValidationError: there is no queue for it", got)
		}
		warmUp(t, i)
		inOneWindow(8 * time.Second)
		event := fmt.Sprintf(`{"userId": %q, "activity": "update_member_role"}`, canary)
		for range 10 {
			ask(t, i, event)
		}
		a, _ := ask(t, i, event)
		if a.Reason != "delayed" || a.Enqueued != 1 {
			t.Fatalf("%+v, want a place", a)
		}
		present := fmt.Sprintf(`{"userId": %q, "activity": "update_member_role", "readyAt": %d}`, canary, a.ReadyAt)
		if early, _ := ask(t, i, present); early.Reason != "delayed" || early.ReadyAt != a.ReadyAt {
			t.Errorf("early: %+v", early)
		}
		time.Sleep(time.Until(time.UnixMilli(a.ReadyAt)))
		if onTime, _ := ask(t, i, present); onTime.Reason != "ok" {
			t.Errorf("on time: %+v", onTime)
		}
	})
}

// If an answer of SQS is lost, the job is on the queue twice, with the same
// place.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // a slow answer of SQS looks like a lost one
		r := newRig(t, 60, 10)
		i, worker := r.start("jobs-guard"), r.start("delayed-jobs")
		warmUp(t, i)
		worker.Ready(t)
		inOneWindow(8 * time.Second)
		for n := range 10 {
			ask(t, i, request(canary, n, ""))
		}
		r.sqs.Fail(1, dynamotest.LoseResponse, "SendMessage")
		a, got := ask(t, i, request(canary, 10, ""))
		if a.Reason != "delayed" || r.delayed.Len() != 2 {
			t.Errorf("%s, and %d on the queue, want 2", got, r.delayed.Len())
		}
		inOneWindow(4 * time.Second)
		onTime := message(t, canary, 1, starts(thisWindow()), 1)
		r.sqs.Fail(1, dynamotest.LoseResponse, "SendMessage")
		if failed := r.work(worker, onTime); failed != "" {
			t.Errorf("failed: %s", failed)
		}
		if got := r.ready.Take(2, 20*time.Second); len(got) != 2 || got[0].Body != onTime || got[1].Body != onTime {
			t.Errorf("on the ready queue: %+v, want the same message twice", got)
		}
	})
}
