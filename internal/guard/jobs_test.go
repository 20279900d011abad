package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A queue keeps the jobs that are put on it.
type queue struct {
	jobs []Job
	err  error // if set, put fails with it
}

func (q *queue) put(_ context.Context, j Job) error {
	q.jobs = append(q.jobs, j)
	return q.err
}

// newJobsBench returns a jobs-guard with a queue. It gives ten places in 10 s.
func newJobsBench(t *testing.T) (*bench, *queue) {
	t.Helper()
	b, q := newBench(t), new(queue)
	b.Guard, b.Delay = cricket.Jobs, q.put
	return b, q
}

// fill takes the ten places of the current window.
func (b *bench) fill() {
	b.t.Helper()
	for range 10 {
		b.mustAsk(`{"activity": "update_member_role"}`)
	}
}

// jobs-guard is a reservoir: ten jobs run in 10 s, and the next one gets a
// place. A delayed job is an answer even if refusals are errors, because an
// error has no place.
func TestADelayedJobRunsAtItsPlace(t *testing.T) {
	b, q := newJobsBench(t)
	b.RefusalIsError = true
	const member = `"activity": "update_member_role", `
	for range 10 {
		b.mustAsk(`{` + member + `"job": {"role": "captain"}}`)
	}
	const tooMany = `"message": "Rate limit exceeded: Too many requests. Please try again later."`
	b.converse([]exchange{
		{time.Second, member + `"requestId": "r1", "job": {"role":  "captain"}`, `{"allowed": false, "reason": "delayed", "limit": 10, "activityCount": 10,
			"remaining": 0, "waitTime": 9000, "resetAt": 1700000060000, "windowKey": 170000004, "granted": 0, ` + tooMany + `,
			"readyAt": 1700000050000, "enqueued": 1}`},
		// A repeat gets the same place.
		{2 * time.Second, member + `"requestId": "r1", "job": {"role":  "captain"}`, `{"allowed": false, "reason": "delayed", "limit": 10,
			"activityCount": 10, "remaining": 0, "waitTime": 8000, "resetAt": 1700000060000, "windowKey": 170000004, "granted": 0, ` + tooMany + `,
			"readyAt": 1700000050000, "enqueued": 1}`},
		// A job that comes early gets the same place again. How many places were given
		// is not known then. A job on time runs.
		{3 * time.Second, member + `"requestId": "r1", "readyAt": 1700000050000, "job": 7`, `{"allowed": false, "reason": "delayed", "waitTime": 7000, "granted": 0, ` + tooMany + `,
			"readyAt": 1700000050000}`},
		{10 * time.Second, member + `"readyAt": 1700000050000, "job": 1`, `{"allowed": true, "reason": "ok", "granted": 1}`},
	})
	queued := Job{UserID: canary, Activity: "update_member_role", RequestID: "r1", ReadyAt: 1_700_000_050_000, Enqueued: 1, Job: []byte(`{"role":  "captain"}`)}
	early := queued
	early.Enqueued, early.Job = 0, []byte(`7`)
	if diff := cmp.Diff([]Job{queued, queued, early}, q.jobs); diff != "" {
		t.Errorf("jobs on the queue (-want +got):\n%s", diff)
	}
	if lines := b.lines.String(); strings.Contains(lines, "CacheRefusals") {
		t.Errorf("a job that presents its place counts as a refusal from memory:\n%s", lines)
	}
}

// If a job can't be put on the queue, the error names the queue and not its
// address. The same event, sent again, gets the same place.
func TestAJobThatCannotBePutOnTheQueueIsAnError(t *testing.T) {
	b, q := newJobsBench(t)
	b.fill()
	q.err = errors.New("https://sqs.secret")
	event := `{"activity": "update_member_role", "requestId": "r1", "job": [1]}`
	b.wantUnavailable("the job could not be put on the delayed queue", event)
	if line := b.log.String(); !strings.Contains(line, `"level":"ERROR","msg":"job not delayed","activity":"update_member_role","error":"https://sqs.secret"`) {
		t.Errorf("the log is %s, want the cause", line)
	}
	b.Log = nil
	b.wantUnavailable("the job could not be put on the delayed queue", event)
	q.jobs, q.err = q.jobs[:1], nil
	got := b.mustAsk(event)
	if got["reason"] != "delayed" || len(q.jobs) != 2 || q.jobs[0].ReadyAt != q.jobs[1].ReadyAt || q.jobs[0].Enqueued != q.jobs[1].Enqueued {
		t.Errorf("%v, and %v on the queue, want the same place twice", got, q.jobs)
	}
}

func TestADelayedJobOverHTTPIsA429(t *testing.T) {
	b, _ := newJobsBench(t)
	b.fill()
	status, headers, got := b.call("POST", `{"userId": "`+canary+`", "activity": "update_member_role"}`, false)
	if status != 429 || headers["Retry-After"] != "10" || got["reason"] != "delayed" || got["readyAt"] != startMillis+10_000.0 {
		t.Errorf("%v %v %v, want 429 with a place in 10 s", status, headers, got)
	}
}

// Shadow mode lets every job through, so it gives no place in a later window.
func TestShadowModeDelaysNoJob(t *testing.T) {
	b, _ := newJobsBench(t)
	b.Mode = live.Shadow
	for i := range 25 {
		got, err := b.ask(`{"activity": "update_member_role"}`)
		want := "ok"
		if i >= 10 {
			want = "shadow"
		}
		if err != nil || got["reason"] != want || got["allowed"] != true {
			t.Errorf("job %d: %v, %v, want %s", i, got, err, want)
		}
	}
	b.now = start.Add(10 * time.Second)
	if got, err := b.ask(`{"activity": "update_member_role"}`); err != nil || got["activityCount"] != 1.0 {
		t.Errorf("in the next window: %v, %v, want one counted", got, err)
	}
}

func TestAReservoirRefusesWhatItCannotDo(t *testing.T) {
	for event, field := range map[string]string{
		`"count": 2`:      "count",
		`"partial": true`: "partial",
		`"op": "reset"`:   "op",
		`"op": "release", "requestId": "r", "at": 1`:   "op",
		`"op": "status", "readyAt": 1700000050000`:     "readyAt",
		`"op": "status", "job": 1`:                     "job",
		`"job": "` + strings.Repeat("j", 32<<10) + `"`: "job",
	} {
		b, _ := newJobsBench(t)
		_, err := b.ask(`{"activity": "update_member_role", ` + event + `}`)
		b.wantInvalid(event, field, err)
	}
}

// A time that the text in force does not give, as after a deploy of another window, is a late job,
// which takes a new place.
func TestAReadyAtThatTheTextDoesNotGiveIsALateJob(t *testing.T) {
	for _, readyAt := range []string{"1700000050001", "1700000045000", "1", "9223372036854775807"} {
		b, q := newJobsBench(t)
		b.fill()
		event := `{"activity": "update_member_role", "requestId": "r1", "readyAt": ` + readyAt + `, "job": 1}`
		for range 2 {
			if got := b.mustAsk(event); got["reason"] != "delayed" || got["readyAt"] != startMillis+10_000.0 || got["enqueued"] != 1.0 {
				t.Errorf("readyAt %s: %v, want the first place of the next window", readyAt, got)
			}
		}
		if len(q.jobs) != 2 || q.jobs[0].ReadyAt != 1_700_000_050_000 || q.jobs[1].ReadyAt != 1_700_000_050_000 {
			t.Errorf("readyAt %s: %v on the queue, want the new place", readyAt, q.jobs)
		}
	}
}

// If the text gives no places any more, a check with a place is like any other check.
// It is counted once under its own id, and can be given back.
func TestAPlaceOfALimitWithoutPlacesIsIgnored(t *testing.T) {
	b := newBench(t)
	const event = `{"activity": "create_post", "requestId": "r1", "readyAt": 1700000050000}`
	got := b.mustAsk(event)
	if got["reason"] != "ok" || got["activityCount"] != 1.0 || got["at"] != startMillis+0.0 || got["requestId"] != "r1" {
		t.Errorf("%v, want ok and a receipt", got)
	}
	if again := b.mustAsk(event); again["reason"] != "duplicate" || again["activityCount"] != 1.0 {
		t.Errorf("again: %v, want a duplicate", again)
	}
	if back := b.mustAsk(fmt.Sprintf(`{"activity": "create_post", "op": "release", "requestId": "r1", "at": %.0f}`, got["at"])); back["activityCount"] != 0.0 {
		t.Errorf("the release: %v, want it given back", back)
	}
	for range 10 {
		b.mustAsk(`{"activity": "create_post"}`)
	}
	if full := b.mustAsk(`{"activity": "create_post", "requestId": "r2", "readyAt": 1700000050000}`); full["reason"] != "limited" {
		t.Errorf("an eleventh: %v, want it refused", full)
	}
}

// A job may have 32 KiB. Its message has the id of the answer, even if the guard
// made the id.
func TestALongJobIsPutOnTheQueueUnderTheIDOfTheAnswer(t *testing.T) {
	b, q := newJobsBench(t)
	b.fill()
	job := `"` + strings.Repeat("j", 32<<10-2) + `"`
	got := b.mustAsk(`{"activity": "update_member_role", "job": ` + job + `}`)
	if len(q.jobs) != 1 || string(q.jobs[0].Job) != job || q.jobs[0].RequestID == "" || q.jobs[0].RequestID != got["requestId"] {
		t.Errorf("%v, and %d jobs on the queue, want this job under this id", got, len(q.jobs))
	}
}

func TestAJobNeedsAQueue(t *testing.T) {
	b, _ := newJobsBench(t)
	b.Delay = nil
	event := `{"activity": "update_member_role", "job": 1}`
	_, err := b.ask(event)
	b.wantInvalid(event, "job", err)
}
