package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
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
