package delayed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/sqstest"
)

const (
	canary = "canary-group-4711"
	start  = 1_700_000_000_000 // a window of 10 s starts here
	window = 10_000
)

// A queue keeps jobs for a test to look at.
type queue struct {
	mu   sync.Mutex
	sent []sent
	err  error
	took time.Duration // by each Send
	busy atomic.Int64
	most int64 // sends at the same time
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

// A bench is a worker whose time the test sets.
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
	took  time.Duration // by each update
	asked atomic.Int64
}

func (s *store) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	time.Sleep(s.took)
	if s.asked.Add(1); s.away != nil {
		return ratelimit.Item{}, false, s.away
	}
	return s.Store.Update(ctx, w)
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: start, store: &store{Store: new(memstore.Store)}, delayed: new(queue), ready: new(queue)}
	logger := slog.New(slog.NewJSONHandler(&b.log, nil))
	b.Worker = &Worker{
		Guard: &guard.Handler{
			Guard: cricket.Jobs,
			Limiter: &ratelimit.Limiter{
				Store: b.store, Memory: ratelimit.NewMemory(1 << 20), Timeout: time.Second,
				Now: func() time.Time { return time.UnixMilli(b.now) },
			},
			DenyOutage: true,
			Log:        logger,
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

// work gives the worker messages m0, m1, ... and returns the ids of those that
// failed.
func (b *bench) work(ctx context.Context, bodies ...string) string {
	b.t.Helper()
	answer := testkit.Must(b.Invoke(ctx, sqstest.Event(b.t, bodies...)))(b.t)
	return sqstest.Failed(b.t, answer)
}

// fill takes n of the group's places.
func (b *bench) fill(n int) {
	b.t.Helper()
	for i := range n {
		testkit.Must(b.Guard.Decide(b.t.Context(), guard.Request{UserID: canary, Activity: "update_member_role", RequestID: fmt.Sprint("filled", i)}))(b.t)
	}
}

// placed returns a job that was given a place.
func placed(readyAt, enqueued int64) guard.Job {
	return guard.Job{UserID: canary, Activity: "update_member_role", RequestID: "job-1", ReadyAt: readyAt, Enqueued: enqueued, Job: json.RawMessage(`{"role":"payload"}`)}
}

func body(readyAt, enqueued int64) string {
	body, err := Body(placed(readyAt, enqueued))
	if err != nil {
		panic(err)
	}
	return body
}
