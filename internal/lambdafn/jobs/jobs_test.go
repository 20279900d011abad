package jobs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/lambdatest"
)

func TestDelayedJobsGoOnTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	i := r.start("jobs-guard")
	ask(t, i, request("other", 0, ""))
	inOneWindow(5 * time.Second)
	for n := range 10 {
		if a, _ := ask(t, i, request(canary, n, "")); a.Reason != "ok" {
			t.Fatalf("job %d: %+v", n, a)
		}
	}
	if n := r.delayed.Len(); n != 0 {
		t.Errorf("%d allowed jobs are on the delayed queue", n)
	}
	a, got := ask(t, i, request(canary, 10, ""))
	if a.Allowed || a.Reason != "delayed" || a.ReadyAt != starts(a.WindowKey+1) || a.Enqueued != 1 {
		t.Fatalf("%s", got)
	}
	messages := r.delayed.Take(1, 20*time.Second)
	if len(messages) != 1 || messages[0].Body != message(t, canary, 10, a.ReadyAt, 1) {
		t.Fatalf("on the delayed queue: %+v", messages)
	}
	// SQS counts whole seconds, and a job that comes early has to wait again.
	if late := time.Now().UnixMilli() - a.ReadyAt; late < 0 {
		t.Errorf("it came %d ms before its time", -late)
	}
}

func TestWithoutAQueueThereAreNoJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	i := r.start("jobs-guard", "DELAYED_QUEUE_URL=")
	if _, got := ask(t, i, request(canary, 0, "")); got.ErrorType != "ValidationError" || !strings.HasPrefix(got.ErrorMessage, "job ") {
		t.Errorf("%s, want a ValidationError: there is no queue for it", got)
	}
	inOneWindow(5 * time.Second)
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
}

// An answer of SQS that is lost: the job is there twice, in the same place.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	i := r.start("jobs-guard")
	inOneWindow(5 * time.Second)
	for n := range 10 {
		ask(t, i, request(canary, n, ""))
	}
	r.sqs.Fail(1, dynamotest.LoseResponse, "SendMessage")
	a, got := ask(t, i, request(canary, 10, ""))
	if a.Reason != "delayed" || r.delayed.Len() != 2 {
		t.Errorf("%s, and %d on the queue, want 2", got, r.delayed.Len())
	}
	worker := r.start("delayed-jobs")
	onTime := message(t, canary, 1, starts(thisWindow()), 1)
	r.sqs.Fail(1, dynamotest.LoseResponse, "SendMessage")
	if failed := r.work(worker, onTime); failed != "" {
		t.Errorf("failed: %s", failed)
	}
	if got := r.ready.Take(2, 5*time.Second); len(got) != 2 || got[0].Body != onTime || got[1].Body != onTime {
		t.Errorf("on the ready queue: %+v, want it twice, as it was", got)
	}
}

func TestQueueUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	i := r.start("jobs-guard", "ON_LIMIT=error")
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
		t.Errorf("the log says nothing of it:\n%s", i.Logs())
	}
	r.sqs.Heal()
	a, again := ask(t, i, request(canary, 10, id))
	if a.Reason != "delayed" || a.Enqueued != 1 || r.delayed.Len() != 1 {
		t.Errorf("asked again: %s, and %d on the queue; want the first place, and 1", again, r.delayed.Len())
	}
}

func TestPoisonGoesToTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
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
}

func TestReadyQueueUnreachable(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 100)
	none := r.start("delayed-jobs", "READY_QUEUE_URL="+r.ready.URL+"-none")
	inOneWindow(2 * time.Second)
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
		if _, n := parse(t, got[0].Body); n == 2 { // the early one may come before it
			return
		}
	}
}

func TestTableUnreachable(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 100)
	i := r.start("delayed-jobs", "DECISION_TIMEOUT=300ms", "ON_OUTAGE=allow")
	inOneWindow(5 * time.Second)
	r.dynamo.Fail(math.MaxInt, dynamotest.Refuse)
	onTime, late := message(t, canary, 0, starts(thisWindow()), 1), message(t, canary, 1, starts(thisWindow()-100), 1)
	if failed := r.work(i, onTime, late); failed != "m1" {
		t.Errorf("failed: %q, want the late one, which needs the table", failed)
	}
	if got := r.ready.Take(1, 5*time.Second); len(got) != 1 || got[0].Body != onTime {
		t.Errorf("on the ready queue: %+v, want the one on time", got)
	}
	r.delayed.Send(late)
	r.feed(i)
	untilLogged(t, i, "job not passed on", 2)
	r.dynamo.Heal()
	if got := r.ready.Take(1, time.Minute); len(got) != 1 || got[0].Body != late {
		t.Errorf("on the ready queue: %+v, want the late one once the table is back", got)
	}
}

func TestEnvironmentThatCantBeRead(t *testing.T) {
	t.Parallel()
	const queue = "DELAYED_QUEUE_URL=http://127.0.0.1:1/000000000000/q"
	for _, tt := range []struct{ function, env, says string }{
		{"jobs-guard", "DELAYED_QUEUE_URL=delayed", `DELAYED_QUEUE_URL is "delayed", want the URL of a queue, such as https://`},
		{"jobs-guard", "DELAYED_QUEUE_URL=http://127.0.0.1:1/", `DELAYED_QUEUE_URL is "http://127.0.0.1:1/"`},
		{"jobs-guard", "MODE=of", `MODE is "of"`},
		{"delayed-jobs", "", `delayed-jobs: DELAYED_QUEUE_URL is "", want the URL of a queue`},
		{"delayed-jobs", queue, `READY_QUEUE_URL is "", want`},
		{"delayed-jobs", queue + " READY_QUEUE_URL=sqs://q/q", `READY_QUEUE_URL is "sqs://q/q"`},
		{"delayed-jobs", queue + " DECISION_TIMEOUT=fast", `DECISION_TIMEOUT is "fast"`},
		{"delayed-jobs", queue + " TABLE_NAME=a/b", `TABLE_NAME is "a/b"`},
	} {
		exit := lambdatest.Start(t, lambdatest.Build(t, "./functions/"+tt.function), strings.Fields(tt.env)...).Exit(t)
		if exit.Code != 1 || !strings.Contains(exit.Logs, tt.says) {
			t.Errorf("%s with %s: %+v, want status 1 and %s", tt.function, tt.env, exit, tt.says)
		}
	}
	lambdatest.Start(t, lambdatest.Build(t, "./functions/jobs-guard")).Ready(t)
	lambdatest.Start(t, lambdatest.Build(t, "./functions/delayed-jobs"), queue, "READY_QUEUE_URL=https://sqs.us-east-1.amazonaws.com/123456789012/r").Ready(t)
}

// Three groups at once, in real time. One asks for 25 jobs, and runs what is
// allowed at once; one has 12 whose places have passed; one has a message that
// comes before its time.
func TestJobsArriveInTheirWindows(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	asked, worker := r.start("jobs-guard"), r.start("delayed-jobs")
	r.feed(worker)
	ask(t, asked, request("other", 0, "")) // the first connection takes its time
	inOneWindow(7 * time.Second)

	const asks, late, premature = "asks-" + canary, "late-" + canary, "early-" + canary
	first := thisWindow()
	letThrough := map[int64]int{} // jobs, by the window in which they were allowed
	for n := range 25 {
		switch a, got := ask(t, asked, request(asks, n, "")); a.Reason {
		case "ok": // for the caller to run, here by the same queue
			letThrough[a.WindowKey]++
			r.ready.Send(message(t, asks, n, starts(a.WindowKey), int64(n+1)))
		case "delayed":
		default:
			t.Fatalf("job %d: %s", n, got)
		}
	}
	for n := range 12 {
		r.delayed.Send(message(t, late, n, starts(first-100), int64(n+1)))
	}
	early := message(t, premature, 0, starts(first+2), 1)
	r.delayed.Send(early)

	groups := collect(t, r, 25+12+1)
	slow := false // this machine, for a job to come in its window: then it took another place
	for _, a := range slices.Concat(groups[asks], groups[premature]) {
		slow = slow || a.window != key(a.readyAt)
	}
	atOnce := map[int64]int{} // of the late ones, those that found room
	for _, a := range groups[late] {
		if key(a.readyAt) == first-100 {
			atOnce[a.window]++
		} else {
			slow = slow || a.window != key(a.readyAt)
		}
	}
	for at, n := range atOnce {
		slow = slow || len(atOnce) > 1 || at != first // they came on both sides of a window's edge
		t.Logf("%d late jobs at once in window %d", n, at)
	}
	for group, want := range map[string]map[int64]int{
		asks:      {first: 10, first + 1: 10, first + 2: 5},
		late:      {first: 10, first + 1: 2},
		premature: {first + 2: 1},
	} {
		windows := map[int64]int{}
		for _, a := range groups[group] {
			windows[a.window]++
		}
		t.Logf("%s by window: %v", group, windows)
		if !maps.Equal(windows, want) && !slow {
			t.Errorf("%s by window: %v, want %v", group, windows, want)
		}
	}
	if slow {
		t.Log("this machine was too slow for every job to come in its window")
	}
	for at, n := range allowed(t, worker.Logs()) {
		letThrough[at] += n
	}
	for at, n := range letThrough {
		if n > 10+10+1 {
			t.Errorf("%d were let through in window %d, want at most 10 of two groups and the one of the third", n, at)
		}
	}
}

// An arrival is a job on the ready queue.
type arrival struct {
	readyAt int64
	window  int64 // in which it came
}

// collect waits for n jobs, by group, each once, and none before its time.
func collect(t *testing.T, r *rig, n int) map[string][]arrival {
	t.Helper()
	groups, seen := map[string][]arrival{}, map[string]bool{}
	for by := time.Now().Add(2 * time.Minute); len(seen) < n; {
		messages := r.ready.Take(1, time.Until(by))
		if len(messages) == 0 {
			t.Fatalf("%d of %d jobs arrived: %v", len(seen), n, groups)
		}
		job, number := parse(t, messages[0].Body)
		sent := messages[0].Sent.UnixMilli()
		if sent < job.ReadyAt {
			t.Errorf("%s arrived %d ms before its time", messages[0].Body, job.ReadyAt-sent)
		}
		if name := fmt.Sprint(job.UserID, " ", number); !seen[name] {
			seen[name] = true
			groups[job.UserID] = append(groups[job.UserID], arrival{job.ReadyAt, key(sent)})
		}
	}
	return groups
}

// allowed counts what a function let through, by window, from its metrics.
func allowed(t *testing.T, log string) map[int64]int {
	t.Helper()
	windows := map[int64]int{}
	for line := range strings.Lines(log) {
		var m struct {
			AWS     struct{ Timestamp int64 } `json:"_aws"`
			Allowed int
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Allowed > 0 {
			windows[key(m.AWS.Timestamp)] += m.Allowed
		}
	}
	if len(windows) == 0 {
		t.Errorf("no metrics in the log:\n%s", log)
	}
	return windows
}
