package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// An exchange is an event at a time, and the answer to it, but for receipts.
type exchange struct {
	at     time.Duration
	event  string // its members, but for userId
	answer string
}

func (b *bench) converse(exchanges []exchange) {
	b.t.Helper()
	for _, x := range exchanges {
		b.now = start.Add(x.at)
		out, err := b.Invoke(b.t.Context(), []byte(`{"userId": "`+canary+`", `+x.event+`}`))
		if err != nil {
			b.t.Fatalf("at %v: %s: %v", x.at, x.event, err)
		}
		got := parse(b.t, out)
		for _, name := range []string{"at", "requestId", "userId", "activity", "op"} {
			delete(got, name)
		}
		if diff := cmp.Diff(parse(b.t, []byte(x.answer)), got); diff != "" {
			b.t.Fatalf("at %v: %s (-want +got):\n%s", x.at, x.event, diff)
		}
	}
}

func TestPins(t *testing.T) {
	b := newBench(t)
	b.Guard = limits.Pins
	const message = `"message": "Pin limit reached (100/12h). Skipped remaining pins."`
	b.converse([]exchange{
		{0, `"activity": "pin", "op": "status"`, `{"allowed": true, "reason": "ok", "limit": 100, "activityCount": 0, "remaining": 100,
			"waitTime": 0, "resetAt": 1700000040000, "display": "12-hour pins: 0/100"}`},
		{0, `"activity": "pin", "count": 93`, `{"allowed": true, "reason": "ok", "limit": 100, "activityCount": 93, "remaining": 7,
			"waitTime": 0, "resetAt": 1700043240000, "granted": 93, "display": "12-hour pins: 93/100"}`},
		{time.Hour, `"activity": "pin", "count": 10, "partial": true`, `{"allowed": true, "reason": "ok", "limit": 100, "activityCount": 100,
			"remaining": 0, "waitTime": 39600000, "resetAt": 1700046840000, "granted": 7, "display": "12-hour pins: 100/100", ` + message + `}`},
		{time.Hour, `"activity": "pin", "count": 10, "partial": true`, `{"allowed": false, "reason": "limited", "limit": 100, "activityCount": 100,
			"remaining": 0, "waitTime": 39600000, "resetAt": 1700046840000, "granted": 0, "display": "12-hour pins: 100/100", ` + message + `}`},
	})
}

func TestChat(t *testing.T) {
	b := newBench(t)
	b.Guard = limits.Chat
	const message = `"message": "Rate limit exceeded: Too many requests. Please try again later."`
	b.converse([]exchange{
		{0, `"activity": "send_message"`, `{"allowed": true, "reason": "ok", "limit": 1, "activityCount": 1, "remaining": 0,
			"waitTime": 0, "resetAt": 1700000045000, "granted": 1}`},
		{2 * time.Second, `"activity": "send_message"`, `{"allowed": false, "reason": "limited", "limit": 1, "activityCount": 1, "remaining": 0,
			"waitTime": 3000, "resetAt": 1700000045000, "granted": 0, ` + message + `}`},
		{2 * time.Second, `"activity": "send_message", "tier": "burst"`, `{"allowed": true, "reason": "ok", "limit": 3, "activityCount": 2,
			"remaining": 1, "waitTime": 0, "resetAt": 1700000050000, "granted": 1}`}, // on the same state
		{3 * time.Second, `"activity": "send_message", "op": "reset"`, `{"allowed": true, "reason": "ok", "limit": 1, "activityCount": 0,
			"remaining": 1, "waitTime": 0, "resetAt": 1700000043000}`},
	})
}

func TestIngest(t *testing.T) {
	b := newBench(t)
	b.Guard = limits.Ingest
	const hour = 14 * time.Minute // start is so far after it
	b.converse([]exchange{
		{-hour, `"activity": "ingest", "count": 50`, `{"allowed": true, "reason": "ok", "limit": 50, "activityCount": 50, "remaining": 0,
			"waitTime": 0, "resetAt": 1700006400000, "windowKey": 472222, "granted": 50}`},
		// At a quarter to, a quarter of the last hour's still counts.
		{105*time.Minute - hour, `"activity": "ingest", "op": "status"`, `{"allowed": true, "reason": "ok", "limit": 50, "activityCount": 12,
			"remaining": 38, "waitTime": 0, "resetAt": 1700006400000, "windowKey": 472223}`},
	})
}

// A queue keeps the jobs that are put on it.
type queue struct {
	jobs []Job
	err  error
}

func (q *queue) put(_ context.Context, j Job) error {
	q.jobs = append(q.jobs, j)
	return q.err
}

func TestJobs(t *testing.T) {
	b := newBench(t)
	b.Guard = limits.Jobs
	var q queue
	b.Delay = q.put
	b.RefusalIsError = true // a delayed job is an answer all the same, with its place
	const member = `"activity": "update_member_role", `
	for range 10 {
		if _, err := b.ask(`{` + member + `"job": {"role": "captain"}}`); err != nil {
			t.Fatal(err)
		}
	}
	const tooMany = `"message": "Rate limit exceeded: Too many requests. Please try again later."`
	b.converse([]exchange{
		{time.Second, member + `"requestId": "r1", "job": {"role":  "captain"}`, `{"allowed": false, "reason": "delayed", "limit": 10, "activityCount": 10,
			"remaining": 0, "waitTime": 9000, "resetAt": 1700000060000, "windowKey": 170000004, "granted": 0, ` + tooMany + `,
			"readyAt": 1700000050000, "enqueued": 1}`},
		// Asked again, it is the same place.
		{2 * time.Second, member + `"requestId": "r1", "job": {"role":  "captain"}`, `{"allowed": false, "reason": "delayed", "limit": 10,
			"activityCount": 10, "remaining": 0, "waitTime": 8000, "resetAt": 1700000060000, "windowKey": 170000004, "granted": 0, ` + tooMany + `,
			"readyAt": 1700000050000, "enqueued": 1}`},
		// Early it is told the same, on time it runs.
		{3 * time.Second, member + `"readyAt": 1700000050000`, `{"allowed": false, "reason": "delayed", "waitTime": 7000, "granted": 0, ` + tooMany + `,
			"readyAt": 1700000050000}`},
		{10 * time.Second, member + `"readyAt": 1700000050000, "job": 1`, `{"allowed": true, "reason": "ok", "granted": 1}`},
	})
	want := []Job{{canary, "update_member_role", "r1", 1_700_000_050_000, 1, []byte(`{"role":  "captain"}`)}}
	if diff := cmp.Diff(append(want, want...), q.jobs); diff != "" {
		t.Errorf("jobs on the queue (-want +got):\n%s", diff)
	}
	if lines := b.lines.String(); strings.Contains(lines, "CacheRefusals") {
		t.Errorf("a place that is presented counts as a refusal from memory:\n%s", lines)
	}
}

// A job that can't be put on the queue is an error that names what to do, and
// its place is given again to who asks with the same id.
func TestJobThatCannotBeDelayed(t *testing.T) {
	b := newBench(t)
	b.Guard = limits.Jobs
	q := queue{err: errors.New("https://sqs.secret")}
	b.Delay = q.put
	ask := `{"activity": "update_member_role", "requestId": "r1", "job": [1]}`
	for range 10 {
		if _, err := b.ask(`{"activity": "update_member_role"}`); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.ask(ask)
	if !errors.As(err, new(*input.Unavailable)) || err.Error() != "the job could not be put on the delayed queue" {
		t.Errorf("the error is %v, want Unavailable", err)
	}
	q.err = nil
	if got, err := b.ask(ask); err != nil || got["reason"] != "delayed" || len(q.jobs) != 2 || q.jobs[0].Enqueued != q.jobs[1].Enqueued {
		t.Errorf("%v, %v, and %v on the queue, want the same place twice", got, err, q.jobs)
	}
}

// In shadow a job that is let through takes no place to come.
func TestJobsInShadow(t *testing.T) {
	b := newBench(t)
	b.Guard, b.Mode = limits.Jobs, Shadow
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
		t.Errorf("in the next window: %v, %v, want a fresh count", got, err)
	}
}

func TestInvalidPlaces(t *testing.T) {
	for event, field := range map[string]string{
		`"count": 2`:      "count",
		`"partial": true`: "partial",
		`"op": "reset"`:   "op",
		`"op": "release", "requestId": "r", "at": 1`:   "op",
		`"readyAt": 1700000050001`:                     "readyAt",
		`"readyAt": -10000`:                            "readyAt",
		`"op": "status", "readyAt": 1700000050000`:     "readyAt",
		`"op": "status", "job": 1`:                     "job",
		`"job": "` + strings.Repeat("j", 32<<10) + `"`: "job",
	} {
		b := newBench(t)
		b.Guard = limits.Jobs
		b.Delay = new(queue).put
		_, err := b.ask(`{"activity": "update_member_role", ` + event + `}`)
		b.wantInvalid(event, field, err)
		b.Delay = nil
		if _, err = b.ask(`{"activity": "update_member_role", "job": 1}`); err == nil {
			t.Error("without a queue a job is taken")
		}
	}
}

func (b *bench) wantInvalid(what, field string, err error) {
	b.t.Helper()
	if e, ok := errors.AsType[*input.ValidationError](err); !ok || e.Field != field || b.store.asked != 0 {
		b.t.Errorf("%.60s: %v after %d requests, want a ValidationError of %s and none", what, err, b.store.asked, field)
	}
}

func TestSeveralLimits(t *testing.T) {
	b := newBench(t)
	b.Guard = limits.Guard{Name: "g", Message: "m", Activities: []limits.Activity{{Name: "a", Limit: policy.Must("minute: 10/1m, day: 200/1d")}}}
	const day = `{"name": "day", "limit": 200, "activityCount": 9, "remaining": 191, "waitTime": 0, "resetAt": 1700006400000}`
	b.converse([]exchange{
		{0, `"activity": "a", "count": 9`, `{"allowed": true, "reason": "ok", "limit": 10, "activityCount": 9, "remaining": 1, "waitTime": 0,
			"resetAt": 1700000100000, "granted": 9, "limits": [
			{"name": "minute", "limit": 10, "activityCount": 9, "remaining": 1, "waitTime": 0, "resetAt": 1700000100000}, ` + day + `]}`},
		{0, `"activity": "a", "count": 2`, `{"allowed": false, "reason": "limited", "limit": 10, "activityCount": 9, "remaining": 1, "waitTime": 60000,
			"resetAt": 1700000100000, "granted": 0, "message": "m", "limitedBy": "minute", "limits": [
			{"name": "minute", "limit": 10, "activityCount": 9, "remaining": 1, "waitTime": 60000, "resetAt": 1700000100000}, ` + day + `]}`},
	})
	_, headers, _ := b.call("POST", `{"userId": "u1", "activity": "a"}`, false)
	if headers["RateLimit-Policy"] != `"minute";q=10;w=60, "day";q=200;w=86400` || headers["RateLimit"] != `"minute";r=9;t=60, "day";r=199;t=6360` {
		t.Errorf("headers: %v", headers)
	}
}
