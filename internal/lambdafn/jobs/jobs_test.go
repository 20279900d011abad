package jobs_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
	"github.com/cric-talk/guards/internal/testkit/sqstest"
)

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

// A group asks for 25 jobs at once: 10 may run, and 15 have places in the next two
// windows, with the messages that their answers tell. A job of another group is received
// before its time. No job arrives before its place, and no window has more than 10 places.
func TestJobsArriveAtTheirPlaces(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // 25 requests must fit into one window
		r := newRig(t, 60, 10)
		asked, worker := r.start("jobs-guard"), r.start("delayed-jobs")
		r.feed(worker)
		warmUp(t, asked)
		worker.Ready(t)
		testkit.InOneWindow(t, window, 7*time.Second)
		first := thisWindow()
		reasons, early := map[string]int{}, message(t, "early-"+canary, 0, starts(first+2), 1)
		due := map[string]int{early: 0} // how often each message has arrived
		for n := range 25 {
			a, _ := ask(t, asked, request(n))
			if reasons[a.Reason]++; !a.Allowed {
				due[messageOf(t, canary, a.RequestID, n, a.ReadyAt, a.Enqueued)] = 0
			}
		}
		if diff := cmp.Diff(map[string]int{"ok": 10, "delayed": 15}, reasons); diff != "" {
			t.Fatalf("25 jobs (-want +got):\n%s", diff)
		}
		r.delayed.Send(early)

		places := map[string]map[int64]int{canary: {}, "early-" + canary: {}} // by group and window
		for by, left := time.Now().Add(2*time.Minute), len(due); left > 0; {
			messages := r.ready.Take(1, time.Until(by))
			if len(messages) == 0 {
				t.Fatalf("%d jobs have not arrived: %v", left, due)
			}
			m := messages[0]
			var job guard.Job
			testkit.OK(t, json.Unmarshal([]byte(m.Body), &job))
			if early := job.ReadyAt - m.Sent.UnixMilli(); early > 0 {
				t.Errorf("%s arrived %d ms before its time", m.Body, early)
			}
			if _, ok := due[m.Body]; !ok {
				t.Errorf("%s arrived, and no answer has told it", m.Body)
			}
			if due[m.Body]++; due[m.Body] == 1 { // otherwise it is a copy
				places[job.UserID][key(job.ReadyAt)]++
				left--
			}
		}
		want := map[string]map[int64]int{canary: {first + 1: 10, first + 2: 5}, "early-" + canary: {first + 2: 1}}
		if diff := cmp.Diff(want, places); diff != "" {
			t.Errorf("places (-want +got):\n%s", diff)
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

// An outage of the table is an error of a late job, whatever ON_OUTAGE says.
func TestTableUnreachable(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // a job must be received in its window, and SQS must answer within 2 s
		r := newRig(t, 60, 10)
		i := r.start("delayed-jobs", "DECISION_TIMEOUT=300ms", "ON_OUTAGE=allow")
		i.Ready(t)
		testkit.InOneWindow(t, window, 8*time.Second)
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

// Counts wait up to a second for a line of metrics. When Lambda shuts an instance
// down, they are written at once.
func TestNoCountIsLostAtAShutdown(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	for function, work := range map[string]func(n int) string{
		"jobs-guard": func(n int) string {
			return fmt.Sprintf(`{"userId": "group%d", "activity": "update_member_role"}`, n)
		},
		"delayed-jobs": func(n int) string { return string(sqstest.Event(t, message(t, fmt.Sprint("group", n), n, 1, 1))) },
	} {
		i := r.start(function)
		began := time.Now()
		const decisions = 20 // of different groups, which are all allowed
		for n := range decisions {
			if got := i.Invoke(t, work(n)); got.ErrorType != "" {
				t.Fatalf("%s: %+v", function, got)
			}
		}
		i.Stop()
		if want := `"Guard":"` + function + `","Activity":"update_member_role"`; !strings.Contains(i.Logs(), want) {
			t.Errorf("%s: the log lacks the dimensions %s:\n%s", function, want, i.Logs())
		}
		counted := 0
		for line := range strings.Lines(i.Logs()) {
			var metrics struct{ Allowed int }
			if json.Unmarshal([]byte(line), &metrics) == nil {
				counted += metrics.Allowed
			}
		}
		if counted != decisions {
			t.Errorf("%s: the log counts %d of %d decisions in %v", function, counted, decisions, time.Since(began))
		}
	}
}

func TestEnvironmentThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const (
		queue = "DELAYED_QUEUE_URL=http://127.0.0.1:1/000000000000/q"
		ready = "READY_QUEUE_URL=https://sqs.us-east-1.amazonaws.com/123456789012/r"
		hasty = "internal/lambdafn/jobs/testdata/hasty"
		short = `hasty, activity "job": limit is "reservoir 10/1s ahead 15m", want a window of at least 2s`
	)
	for _, tt := range []struct{ function, env, says string }{
		{hasty, queue, short},
		{hasty, queue + " " + ready, short},
		{"functions/jobs-guard", "DELAYED_QUEUE_URL=delayed", `DELAYED_QUEUE_URL is "delayed", want the URL of a queue, such as https://`},
		{"functions/jobs-guard", "DELAYED_QUEUE_URL=http://127.0.0.1:1/", `DELAYED_QUEUE_URL is "http://127.0.0.1:1/"`},
		{"functions/jobs-guard", "MODE=of", `MODE is "of"`},
		{"functions/delayed-jobs", "", `delayed-jobs: DELAYED_QUEUE_URL is "", want the URL of a queue`},
		{"functions/delayed-jobs", queue, `READY_QUEUE_URL is "", want`},
		{"functions/delayed-jobs", queue + " READY_QUEUE_URL=sqs://q/q", `READY_QUEUE_URL is "sqs://q/q"`},
		{"functions/delayed-jobs", queue + " DECISION_TIMEOUT=fast", `DECISION_TIMEOUT is "fast"`},
		{"functions/delayed-jobs", queue + " TABLE_NAME=a/b", `TABLE_NAME is "a/b"`},
	} {
		exit := lambdatest.Start(t, lambdatest.Build(t, "./"+tt.function), strings.Fields(tt.env)...).Exit(t)
		if exit.Code != 1 || !strings.Contains(exit.Logs, tt.says) {
			t.Errorf("%s with %s: %+v, want status 1 and %s", tt.function, tt.env, exit, tt.says)
		}
	}
	lambdatest.Start(t, lambdatest.Build(t, "./functions/jobs-guard")).Ready(t)
	lambdatest.Start(t, lambdatest.Build(t, "./functions/jobs-guard"), queue).Ready(t)
	lambdatest.Start(t, lambdatest.Build(t, "./functions/delayed-jobs"), queue, ready).Ready(t)
}
