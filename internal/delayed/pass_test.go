package delayed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

func TestWhereAJobGoes(t *testing.T) {
	const next = start + window
	for name, tt := range map[string]struct {
		filled         int
		now            int64
		message        string
		ready, delayed []sent
		asked          int64 // requests to the table, at most
	}{
		"a job on time is passed on without a request to the table": {
			now: next, message: body(next, 3), ready: []sent{{Job: placed(next, 3)}},
		},
		"a job is on time until the end of its window": {
			now: next + window - 1, message: body(next, 3), ready: []sent{{Job: placed(next, 3)}},
		},
		"an early job keeps its place": {
			now: next - 2500, message: body(next, 3), delayed: []sent{{placed(next, 3), 2500 * time.Millisecond}},
		},
		"a job that was early when the guard put it on the queue keeps its place": { // such a job has no number
			now: next - 2500, message: body(next, 0), delayed: []sent{{placed(next, 0), 2500 * time.Millisecond}},
		},
		"and is passed on when it is on time": {
			now: next, message: body(next, 0), ready: []sent{{Job: placed(next, 0)}},
		},
		"a late job runs if the window has a free place": {
			now: next + window, message: body(next, 3), ready: []sent{{Job: placed(next, 3)}}, asked: 1,
		},
		"a late job takes a new place if the window has none": {
			filled: 13, now: start + 4000, message: body(start-window, 3),
			delayed: []sent{{placed(next, 4), 6 * time.Second}}, asked: 1,
		},
		"a late job waits if there is no new place": {
			filled: 91 * 10, now: start, message: body(start-window, 3), // this window and 15 minutes ahead
			delayed: []sent{{placed(start-window, 3), window * time.Millisecond}}, asked: 1,
		},
		"a place from before a change of the limit counts as passed": {
			filled: 10, now: start, message: body(next+7, 3), delayed: []sent{{placed(next, 1), window * time.Millisecond}}, asked: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Guard.RefusalIsError = true // the stack sets ON_LIMIT for this function too, which ignores it
			b.fill(tt.filled)
			b.now = tt.now
			b.store.asked.Store(0)
			if failed := b.work(t.Context(), tt.message); failed != "" {
				t.Errorf("failed: %s\n%s", failed, &b.log)
			}
			if diff := cmp.Diff(tt.ready, b.ready.sent); diff != "" {
				t.Errorf("ready (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.delayed, b.delayed.sent); diff != "" {
				t.Errorf("delayed (-want +got):\n%s", diff)
			}
			if got := b.store.asked.Load(); got > tt.asked {
				t.Errorf("the table was asked %d times, want at most %d", got, tt.asked)
			}
		})
	}
}

// A round is a visit that ends with the job on the delayed queue again. The metric Refused
// counts rounds. No number of rounds is too many.
func TestRoundsAreCounted(t *testing.T) {
	b := newBench(t)
	var lines bytes.Buffer
	b.Guard.Metrics = &metrics.Batch{Writer: metrics.Writer{W: &lines}}
	message := body(start+window, 3)
	const rounds = 40
	for n := range rounds { // it is early, and then late again and again, because others take each place first
		if n > 0 {
			b.now += 2 * window
			for i := range 10 {
				b.decide(guard.Request{UserID: canary, Activity: "update_member_role", RequestID: fmt.Sprint(n, "before", i)})
			}
		}
		if failed := b.work(t.Context(), message); failed != "" || len(b.delayed.sent) != n+1 {
			t.Fatalf("round %d: failed %q, %d messages, want it back on the queue\n%s", n, failed, len(b.delayed.sent), &b.log)
		}
		job := b.delayed.sent[n].Job
		message = body(job.ReadyAt, job.Enqueued)
	}
	b.Guard.Metrics.Flush()
	counted := 0
	for line := range strings.Lines(lines.String()) {
		var m struct{ Refused int }
		testkit.OK(t, json.Unmarshal([]byte(line), &m))
		counted += m.Refused
	}
	if counted != rounds || len(b.ready.sent) != 0 {
		t.Errorf("Refused is %d, and %d jobs are ready, want %d rounds and none", counted, len(b.ready.sent), rounds)
	}
}

// A late message arrives twice at the same time, and once more while the table
// remembers its id. All three deliveries get the same place.
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

// A late job is judged by its customer's number and tier, as its check was. After a deploy that
// takes no number any more, it is judged by the text.
func TestALateJobOfACustomer(t *testing.T) {
	for name, tt := range map[string]struct {
		asked guard.Request
		then  string // the limit when the job comes
		ready bool
	}{
		"a number":        {guard.Request{Limit: guards.Numbers{"day": 500}}, "places: reservoir 10/10s ahead 15m, day: 10/1d max 1000", true},
		"a tier":          {guard.Request{Tier: "pro"}, "places: reservoir 10/10s ahead 15m, day: 10/1d max 1000", true},
		"no max any more": {guard.Request{Limit: guards.Numbers{"day": 500}}, "places: reservoir 10/10s ahead 15m, day: 500/1d", true},
		"a lower text":    {guard.Request{Limit: guards.Numbers{"day": 500}}, "places: reservoir 10/10s ahead 15m, day: 10/1d", false},
	} {
		b := newBench(t)
		page := func(text string) {
			b.Guard.Guard = limits.Guard{Name: "jobs-guard", Message: "Too many.", DelayedQueue: true, Activities: []limits.Activity{{
				Name: "update_member_role", Limit: policy.Must(text), Tiers: limits.Tiers{"pro": policy.Must(strings.Replace(text, "10/1d", "500/1d", 1))},
			}}}
		}
		page("places: reservoir 10/10s ahead 15m, day: 10/1d max 1000")
		b.Guard.Delay = func(_ context.Context, job guard.Job) error { return b.delayed.Send(t.Context(), job, 0) }
		for i := range 12 {
			r := tt.asked
			r.UserID, r.Activity, r.RequestID, r.Job = canary, "update_member_role", fmt.Sprint("job", i), json.RawMessage(`1`)
			testkit.Must(b.Guard.Decide(t.Context(), r))(t)
		}
		late := testkit.Must(Body(b.delayed.sent[0].Job))(t)
		page(tt.then)
		b.now = start + 2*window + 500 // the delayed queue was late
		if failed := b.work(t.Context(), late); failed != "" || len(b.ready.sent) == 1 != tt.ready {
			t.Errorf("%s: %q failed, and %d jobs are ready, want it ready: %v", name, failed, len(b.ready.sent), tt.ready)
		}
	}
}
