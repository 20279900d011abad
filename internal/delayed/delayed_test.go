package delayed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

const (
	canary = "canary-group-4711"
	start  = 1_700_000_000_000 // of a window of 10 s
	window = 10_000
)

// A queue is one that a test looks into.
type queue struct {
	mu   sync.Mutex
	sent []sent
	err  error
	took time.Duration // for each Send
	busy atomic.Int64
	most int64 // at once
}

type sent struct {
	Job   guard.Job
	Delay time.Duration
}

func (q *queue) Send(ctx context.Context, job guard.Job, delay time.Duration) error {
	busy := q.busy.Add(1)
	defer q.busy.Add(-1)
	select {
	case <-time.After(q.took):
	case <-ctx.Done():
		return ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = max(q.most, busy)
	if q.err == nil {
		q.sent = append(q.sent, sent{job, delay})
	}
	return q.err
}

// A bench is a worker at a time that a test sets.
type bench struct {
	*Worker
	t              *testing.T
	now            int64
	store          *store
	delayed, ready *queue
	log            bytes.Buffer
}

type store struct {
	ratelimit.Store
	away  error
	asked int
}

func (s *store) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	if s.asked++; s.away != nil {
		return ratelimit.Item{}, false, s.away
	}
	return s.Store.Update(ctx, w)
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: start, store: &store{Store: new(memstore.Store)}, delayed: new(queue), ready: new(queue)}
	logger := slog.New(slog.NewJSONHandler(&b.log, nil))
	b.Worker = &Worker{
		Guard: &guard.Guard{
			Rules: limits.Jobs,
			Limiter: &ratelimit.Limiter{
				Store: b.store, Cache: ratelimit.NewCache(10), Timeout: time.Second, DenyOutage: true,
				Now: func() time.Time { return time.UnixMilli(b.now) },
			},
			Log: logger,
		},
		Delayed: b.delayed, Ready: b.ready, Log: logger,
	}
	t.Cleanup(func() {
		if strings.Contains(b.log.String(), canary) || strings.Contains(b.log.String(), "payload") {
			t.Errorf("a user id or a job in the log:\n%s", &b.log)
		}
	})
	return b
}

// work hands the worker messages m0, m1, ... and returns the failed ones.
func (b *bench) work(ctx context.Context, bodies ...string) string {
	b.t.Helper()
	event := events.SQSEvent{Records: []events.SQSMessage{}}
	for i, body := range bodies {
		event.Records = append(event.Records, events.SQSMessage{MessageId: fmt.Sprint("m", i), Body: body})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := b.Invoke(ctx, payload)
	if err != nil {
		b.t.Fatal(err)
	}
	var response events.SQSEventResponse
	if err := json.Unmarshal(answer, &response); err != nil || response.BatchItemFailures == nil {
		b.t.Fatalf("%s: %v", answer, err)
	}
	var failed []string
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return strings.Join(failed, " ")
}

// fill takes n places of the group from the policy.
func (b *bench) fill(n int) {
	b.t.Helper()
	for i := range n {
		if _, err := b.Guard.Decide(b.t.Context(), guard.Request{UserID: canary, Activity: "update_member_role", RequestID: fmt.Sprint("filled", i)}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func placed(readyAt, enqueued int64) guard.Job {
	return guard.Job{UserID: canary, Activity: "update_member_role", ReadyAt: readyAt, Enqueued: enqueued, Job: json.RawMessage(`{"role":"payload"}`)}
}

func body(readyAt, enqueued int64) string {
	body, err := Body(placed(readyAt, enqueued))
	if err != nil {
		panic(err)
	}
	return body
}

func TestTurns(t *testing.T) {
	const next = start + window
	for name, tt := range map[string]struct {
		filled         int
		now            int64
		message        string
		ready, delayed []sent
		asked          int // of the table, by this decision
	}{
		"on time it is passed on, and the table isn't asked": {
			now: next, message: body(next, 3), ready: []sent{{Job: placed(next, 3)}},
		},
		"to the end of its window it is on time": {
			now: next + window - 1, message: body(next, 3), ready: []sent{{Job: placed(next, 3)}},
		},
		"early it keeps its place": {
			now: next - 2500, message: body(next, 3), delayed: []sent{{placed(next, 3), 2500 * time.Millisecond}},
		},
		"late it runs where the window has room": {
			now: next + window, message: body(next, 3), ready: []sent{{Job: placed(next, 3)}}, asked: 1,
		},
		"late it takes a new place where the window has none": {
			filled: 13, now: start + 4000, message: body(start-window, 3),
			delayed: []sent{{placed(next, 4), 6 * time.Second}}, asked: 1,
		},
		"late it waits for a place where none is to be had": {
			filled: 91 * 10, now: start, message: body(start-window, 3), // this window's, and 15 minutes'
			delayed: []sent{{placed(start-window, 3), window * time.Millisecond}}, asked: 1,
		},
		"a place of other windows, before the limit was changed, has passed": {
			filled: 10, now: start, message: body(next+7, 3), delayed: []sent{{placed(next, 1), window * time.Millisecond}}, asked: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.fill(tt.filled)
			b.now, b.store.asked = tt.now, 0
			if failed := b.work(t.Context(), tt.message); failed != "" {
				t.Errorf("failed: %s\n%s", failed, &b.log)
			}
			if diff := cmp.Diff(tt.ready, b.ready.sent); diff != "" {
				t.Errorf("ready (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.delayed, b.delayed.sent); diff != "" {
				t.Errorf("delayed (-want +got):\n%s", diff)
			}
			if b.store.asked > tt.asked {
				t.Errorf("the table was asked %d times, want at most %d", b.store.asked, tt.asked)
			}
		})
	}
}

// A late message that comes again, or twice, within the memory of ids.
func TestOnePlaceForOneMessage(t *testing.T) {
	b := newBench(t)
	b.fill(13)
	late := body(start-window, 3)
	b.work(t.Context(), late, late)
	b.now += 9000
	b.work(t.Context(), late)
	want := placed(start+window, 4)
	for _, s := range b.delayed.sent {
		if diff := cmp.Diff(want, s.Job); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if len(b.delayed.sent) != 3 || len(b.ready.sent) != 0 {
		t.Errorf("%d delayed, %d ready, want 3 and none", len(b.delayed.sent), len(b.ready.sent))
	}
}

func TestModes(t *testing.T) {
	for _, mode := range []guard.Mode{guard.Off, guard.Shadow} {
		b := newBench(t)
		b.fill(30)
		b.Guard.Mode = mode
		if failed := b.work(t.Context(), body(start+window, 3), body(start-window, 4)); failed != "" || len(b.ready.sent) != 2 {
			t.Errorf("%s: failed %q, ready %v, want both passed on: nobody is refused", mode, failed, b.ready.sent)
		}
	}
}

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
		strings.Replace(good, "update_member_role", "payload", 1):       "activity",
		strings.Replace(good, fmt.Sprint(start), `"`+canary+`"`, 1):     "body",
		strings.Replace(good, fmt.Sprint(start), "-1", 1):               "readyAt",
		strings.Replace(good, `"enqueued":1`, `"enqueued":0`, 1):        "enqueued",
		strings.Replace(good, `,"job":{"role":"payload"}`, ``, 1):       "job",
		strings.Replace(good, `{"role":"payload"}`, `{"a":1,"a":1}`, 1): "body",
	} {
		b := newBench(t)
		if failed := b.work(t.Context(), good, poison, good); failed != "m1" || len(b.ready.sent) != 2 {
			t.Errorf("%s: failed %q, %d ready, want m1 alone", poison, failed, len(b.ready.sent))
		}
		if log := b.log.String(); !strings.Contains(log, `"msg":"invalid job","message":"m1","field":"`+field+`"`) {
			t.Errorf("%s: log %s, want field %s", poison, log, field)
		}
	}
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
			b.store.away = &ratelimit.StoreError{Failure: ratelimit.Rejected, What: "down", Err: down}
		}, "m0"},
		"the ready queue":   {func(b *bench) { b.ready.err = down }, "m0 m1"},
		"the delayed queue": {func(b *bench) { b.delayed.err = down }, "m2"},
	} {
		b := newBench(t)
		tt.fail(b)
		if failed := b.work(t.Context(), late, onTime, early); failed != tt.failed {
			t.Errorf("without %s %q failed, want %q", name, failed, tt.failed)
		}
		if n := strings.Count(b.log.String(), `"msg":"job not passed on"`); n != len(strings.Fields(tt.failed)) || !strings.Contains(b.log.String(), down.Error()) {
			t.Errorf("without %s the log is\n%s", name, &b.log)
		}
	}
}

func TestTenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.ready.took = time.Second
		began := time.Now()
		messages := make([]string, 25)
		for i := range messages {
			messages[i] = body(start, int64(i+1))
		}
		if failed := b.work(t.Context(), messages...); failed != "" || len(b.ready.sent) != 25 {
			t.Errorf("failed %q, %d ready", failed, len(b.ready.sent))
		}
		if took := time.Since(began); b.ready.most != 10 || took != 3*time.Second {
			t.Errorf("%d at once in %v, want 10 in 3 s", b.ready.most, took)
		}
	})
}

// What time is left for is done, the rest comes again.
func TestAnswersBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.ready.took = 1500 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		messages := make([]string, 25)
		for i := range messages {
			messages[i] = body(start, int64(i+1))
		}
		failed := strings.Fields(b.work(ctx, messages...))
		if len(failed) != 15 || len(b.ready.sent) != 10 || ctx.Err() != nil {
			t.Errorf("%d failed, %d ready, %v; want 15 and 10 before the deadline", len(failed), len(b.ready.sent), ctx.Err())
		}
	})
}

func TestBody(t *testing.T) {
	job := placed(start, 1)
	job.Job = json.RawMessage(`{ "html": "<&>", "n": 1.50, "s": "\u00e9\u0000\uffff` + "\ufffe\uffff" + `" }`)
	want := `{"userId":"` + canary + `","activity":"update_member_role","readyAt":1700000000000,"enqueued":1,` +
		`"job":{"html":"<&>","n":1.50,"s":"é\u0000\uffff\ufffe\uffff"}}`
	if got, err := Body(job); got != want || err != nil {
		t.Errorf("Body = %s, %v, want %s", got, err, want)
	}
	job.Job = json.RawMessage(`{`)
	if got, err := Body(job); err == nil {
		t.Errorf("Body = %s of a job that is no JSON", got)
	}
}
