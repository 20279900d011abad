package delayed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit"
)

func TestPoison(t *testing.T) {
	good := body(start, 1)
	for poison, field := range map[string]string{
		"":                                       "body",
		"no JSON":                                "body",
		"[]":                                     "body",
		"{}":                                     "readyAt",
		good + "x":                               "body",
		strings.Replace(good, "{", `{"x":1,`, 1): "body",
		strings.Replace(good, "{", `{"userId":"u",`, 1):                 "body",
		strings.Replace(good, "userId", "USERID", 1):                    "body",
		strings.Replace(good, canary, canary+" ", 1):                    "userId",
		strings.Replace(good, canary, strings.Repeat("u", 129), 1):      "userId",
		strings.Replace(good, "update_member_role", "payload", 1):       "activity",
		strings.Replace(good, fmt.Sprint(start), `"`+canary+`"`, 1):     "body",
		strings.Replace(good, fmt.Sprint(start), "-1", 1):               "readyAt",
		strings.Replace(good, `"enqueued":1`, `"enqueued":-1`, 1):       "enqueued",
		strings.Replace(good, `"job-1"`, `""`, 1):                       "requestId",
		strings.Replace(good, `,"job":{"role":"payload"}`, ``, 1):       "job",
		strings.Replace(good, `{"role":"payload"}`, `{"a":1,"a":1}`, 1): "body",
	} {
		b := newBench(t)
		if failed := b.work(t.Context(), good, poison, good); failed != "m1" || len(b.ready.sent) != 2 {
			t.Errorf("%s: failed %q, %d ready, want only m1", poison, failed, len(b.ready.sent))
		}
		if log := b.log.String(); !strings.Contains(log, `"msg":"invalid job","messageId":"m1","field":"`+field+`"`) {
			t.Errorf("%s: log %s, want field %s", poison, log, field)
		}
	}
}

// A late job waits up to 15 minutes. If its action has become too expensive for its number, no
// wait helps, and the log names the field.
func TestALateJobWhoseNumberIsTooLow(t *testing.T) {
	b := newBench(t)
	b.Guard.Guard = limits.Guard{Name: "jobs-guard", Message: "m", DelayedQueue: true, Activities: []limits.Activity{{
		Name: "update_member_role", Limit: policy.Must("places: reservoir 10/10s ahead 15m, day: 10/1d max 1000 cost 2"),
	}}}
	job := placed(start-window, 3)
	job.Limit = guards.Numbers{"day": 1}
	if failed := b.work(t.Context(), testkit.Must(Body(job))(t)); failed != "m0" || len(b.ready.sent)+len(b.delayed.sent) > 0 {
		t.Errorf("failed %q, %d ready, %d delayed, want it failed", failed, len(b.ready.sent), len(b.delayed.sent))
	}
	testkit.Contains(t, "the log", b.log.String(), `"msg":"invalid job","messageId":"m0","field":"limit"`)
}

func TestNotAnEventOfSQS(t *testing.T) {
	for _, payload := range []string{``, `{}`, `[]`, `{"Records": 1}`, `{"userId": "` + canary + `"}`} {
		_, err := newBench(t).Invoke(t.Context(), []byte(payload))
		if e, ok := errors.AsType[*input.ValidationError](err); !ok || e.Error() != "Records is missing, want an event of SQS" {
			t.Errorf("%s: %v", payload, err)
		}
	}
	if failed := newBench(t).work(t.Context()); failed != "" {
		t.Errorf("no messages: %s", failed)
	}
}

func TestFailuresAreReportedOneByOne(t *testing.T) {
	down := errors.New("connection refused")
	late, onTime, early := body(start-window, 1), body(start, 2), body(start+window, 3)
	for name, tt := range map[string]struct {
		fail   func(*bench)
		failed string
	}{
		"the table": {func(b *bench) {
			b.store.away = &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "down", Err: down}
		}, "m0"},
		"the ready queue":   {func(b *bench) { b.ready.err = down }, "m0 m1"},
		"the delayed queue": {func(b *bench) { b.delayed.err = down }, "m2"},
	} {
		b := newBench(t)
		tt.fail(b)
		if failed := b.work(t.Context(), late, onTime, early); failed != tt.failed {
			t.Errorf("without %s: %q failed, want %q", name, failed, tt.failed)
		}
		lines := 0 // each with its cause
		for line := range strings.Lines(b.log.String()) {
			if strings.Contains(line, `"msg":"job not passed on"`) && strings.Contains(line, down.Error()) {
				lines++
			}
		}
		if lines != len(strings.Fields(tt.failed)) {
			t.Errorf("without %s: the log is\n%s", name, &b.log)
		}
	}
}

// The worker handles ten messages at the same time, and as many as it has time for. SQS
// delivers the others again.
func TestMessagesOfABatch(t *testing.T) {
	for name, tt := range map[string]struct {
		took     time.Duration // by the ready queue for each
		deadline time.Duration
		ready    int
		all      time.Duration
	}{
		"time for all": {time.Second, time.Minute, 25, 3 * time.Second},
		"time for ten": {1500 * time.Millisecond, 3 * time.Second, 10, 2900 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.ready.took = tt.took
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				defer cancel()
				var messages []string
				for i := range 25 {
					messages = append(messages, body(start, int64(i+1)))
				}
				began := time.Now()
				failed := strings.Fields(b.work(ctx, messages...))
				took := time.Since(began)
				if len(failed) != 25-tt.ready || len(b.ready.sent) != tt.ready || b.ready.most != 10 || took != tt.all {
					t.Errorf("%d failed, %d ready, %d at once in %v; want %d ready, 10 at once in %v", len(failed), len(b.ready.sent), b.ready.most, took, tt.ready, tt.all)
				}
			})
		})
	}
}

// After an outage, the late jobs of a batch wait for the one that probes the table.
func TestALateBatchWaitsForTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		late := make([]string, 5)
		for i := range late {
			late[i] = body(start-window, int64(i+1))
			late[i] = strings.Replace(late[i], "job-1", fmt.Sprint("job-", i), 1)
		}
		b.store.away = errors.New("connection refused")
		if failed := b.work(t.Context(), late...); len(strings.Fields(failed)) != 5 {
			t.Errorf("in an outage, %q failed, want all", failed)
		}
		b.store.away, b.store.took = nil, 50*time.Millisecond
		b.now += 5000
		if failed := b.work(t.Context(), late...); failed != "" || len(b.ready.sent) != 5 {
			t.Errorf("after it, %q failed and %d are ready, want 5", failed, len(b.ready.sent))
		}
		time.Sleep(time.Second)
	})
}

func TestBody(t *testing.T) {
	job := placed(start, 1)
	job.Job = json.RawMessage(`{ "html": "<&>", "n": 1.50, "s": "\u00e9\u0000\uffff` + "\ufffe\uffff" + `" }`)
	want := `{"userId":"` + canary + `","activity":"update_member_role","requestId":"job-1","readyAt":1700000000000,"enqueued":1,` +
		`"job":{"html":"<&>","n":1.50,"s":"é\u0000\uffff\ufffe\uffff"}}`
	if got, err := Body(job); got != want || err != nil {
		t.Errorf("Body = %s, %v, want %s", got, err, want)
	}
	job.Tier, job.Limit, job.Job = "pro", guards.Number(500), json.RawMessage(`1`)
	if got, err := Body(job); !strings.HasSuffix(got, `"enqueued":1,"tier":"pro","limit":500,"job":1}`) || err != nil {
		t.Errorf("Body = %s, %v, want it with the tier and the number", got, err)
	}
	job.Job = json.RawMessage(`{`)
	if got, err := Body(job); err == nil {
		t.Errorf("Body = %s for a job that is not JSON, want an error", got)
	}
}
