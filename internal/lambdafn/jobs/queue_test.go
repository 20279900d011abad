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
			if a, _ := ask(t, i, request(n)); a.Reason != "ok" {
				t.Fatalf("job %d: %+v", n, a)
			}
		}
		if n := r.delayed.Len(); n != 0 {
			t.Errorf("%d allowed jobs are on the delayed queue, want none", n)
		}
		a, got := ask(t, i, request(10))
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

// Without a queue the guard runs, and a job has no place to go.
func TestWithoutAQueueThereAreNoJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	i := r.start("jobs-guard", "DELAYED_QUEUE_URL=")
	if _, got := ask(t, i, request(0)); got.ErrorType != "ValidationError" || !strings.HasPrefix(got.ErrorMessage, "job ") {
		t.Errorf("%s, want a ValidationError", got)
	}
	if a, _ := ask(t, i, fmt.Sprintf(`{"userId": %q, "activity": "update_member_role"}`, canary)); a.Reason != "ok" {
		t.Errorf("%+v, want a check without a job allowed", a)
	}
}
