package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// asks returns a guard that puts its jobs on the delayed queue, and the
// document's request: a check with a job.
func (b *bench) asks(id string) guard.Request {
	b.Guard.Delay = func(ctx context.Context, job guard.Job) error { return b.delayed.Send(ctx, job, 0) }
	return guard.Request{UserID: canary, Activity: "update_member_role", RequestID: id, Job: placed(0, 0).Job}
}

func (b *bench) decide(r guard.Request) guard.Answer {
	b.t.Helper()
	return testkit.Must(b.Guard.Decide(b.t.Context(), r))(b.t)
}

// The document's table of answers tells where a job is. This window and the
// windows of the next 15 minutes have 910 places.
func TestOnlyAJobWithAPlaceIsOnTheQueue(t *testing.T) {
	down := &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "down", Err: errors.New("connection refused")}
	for name, away := range map[string]error{"with the table": nil, "without the table": down} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.store.away, b.Guard.DenyOutage = away, false
			for n := range 910 {
				a := b.decide(b.asks(fmt.Sprint(n)))
				queued := len(b.delayed.sent)
				if want := max(0, n+1-10); queued != want || a.Allowed != (n < 10) || (a.Decision.ReadyAt > b.now) != (n >= 10) {
					t.Fatalf("job %d: %+v, and %d are on the queue, want %d", n, a, queued, want)
				}
			}
			a := b.decide(b.asks("one-more"))
			if a.Allowed || a.Decision.ReadyAt != 0 || len(b.delayed.sent) != 900 || away == nil && a.Decision.Reason != "limited" {
				t.Errorf("without a place: %+v, and %d are on the queue, want it refused and 900", a, len(b.delayed.sent))
			}
			b.now += a.Decision.Wait.Milliseconds()
			if again := b.decide(b.asks("one-more")); again.Decision.ReadyAt == 0 || len(b.delayed.sent) != 901 {
				t.Errorf("again after %v: %+v, and %d are on the queue, want a place", a.Decision.Wait, again, len(b.delayed.sent))
			}
		})
	}
}

func TestAStatusTakesNoPlace(t *testing.T) {
	b := newBench(t)
	b.fill(12)
	for range 3 {
		status := b.decide(guard.Request{UserID: canary, Activity: "update_member_role", Op: "status"})
		if d := status.Decision; d.Reason != "delayed" || d.ReadyAt != start+window || d.Waiting != 3 {
			t.Errorf("status: %+v, want the third place of the next window", status)
		}
	}
	if check := b.decide(b.asks("r")); check.Decision.Waiting != 3 {
		t.Errorf("a check afterwards: %+v, want the third place", check)
	}
}

// A document is a table that has only live limits.
type document []byte

func (d document) Settings(context.Context, bool) (live.Stored, error) {
	return live.Stored{Version: 1, Document: d}, nil
}

func (document) Blocks(context.Context, bool) (live.Stored, error) { return live.Stored{}, nil }

// Operators can let jobs through before their places: with a mode off or shadow, of the
// function or a live one, or with a granted role that is not limited.
func TestWhatLetsEachJobThrough(t *testing.T) {
	granted := live.Grant{UserID: canary, Role: "staff", Until: time.UnixMilli(start).Add(time.Hour), Reason: "test"}
	for name, tt := range map[string]struct {
		mode     string
		settings liveedit.Draft
		passed   int
	}{
		"nothing":            {"", liveedit.Draft{}, 0},
		"MODE=off":           {live.Off, liveedit.Draft{}, 2},
		"MODE=shadow":        {live.Shadow, liveedit.Draft{}, 2},
		"a live mode off":    {"", liveedit.Draft{}.Set("update_member_role", "", "", "off"), 2},
		"a live mode shadow": {"", liveedit.Draft{}.Set("update_member_role", "", "", "shadow"), 2},
		"a granted role":     {"", liveedit.Draft{}.Grant(granted, time.UnixMilli(start)), 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.fill(30)
				text := testkit.Must(tt.settings.Document())(t)
				b.Guard.Mode, b.Guard.BypassRoles = tt.mode, []string{"staff"}
				b.Guard.Live = &live.Follower{Source: document(text), Guards: cricket.All, Now: b.Guard.Limiter.Now}
				b.Guard.Live.Refresh(t.Context(), 0)()
				failed := b.work(t.Context(), body(start+window, 3), body(start-window, 4))
				if failed != "" || len(b.ready.sent) != tt.passed || len(b.delayed.sent) != 2-tt.passed {
					t.Errorf("failed %q, ready %v, delayed %v, want %d passed on", failed, b.ready.sent, b.delayed.sent, tt.passed)
				}
			})
		})
	}
}

// A blocks is a table that has only blocks.
type blocks live.Blocks

func (blocks) Settings(context.Context, bool) (live.Stored, error) { return live.Stored{}, nil }

func (b blocks) Blocks(context.Context, bool) (live.Stored, error) { return live.Blocks(b).Stored(1) }

// A job whose place was given before its user was blocked is passed on at its time, and not
// before. A new job is refused.
func TestABlockStopsOnlyNewJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.fill(30)
		spam := live.Block{UserID: canary, Until: time.UnixMilli(start).Add(time.Hour), Reason: "spam"}
		b.Guard.Live = &live.Follower{Source: blocks{All: []live.Block{spam}}, Guards: cricket.All, Now: b.Guard.Limiter.Now}
		b.Guard.Live.Refresh(t.Context(), 0)()
		if failed := b.work(t.Context(), body(start, 1), body(start+window, 3)); failed != "" || len(b.ready.sent) != 1 || len(b.delayed.sent) != 1 {
			t.Errorf("failed %q, ready %v, delayed %v, want one on time and one early", failed, b.ready.sent, b.delayed.sent)
		}
		if a := b.decide(b.asks("new")); a.Allowed || a.Reason != ratelimit.Blocked || len(b.delayed.sent) != 1 {
			t.Errorf("a new job: %+v, and %d are on the queue, want it blocked and 1", a, len(b.delayed.sent))
		}
	})
}

// The document shows events, each with its answer below it. Twelve jobs of the
// group are counted before these events.
func TestExamplesInTheDocument(t *testing.T) {
	document := testkit.Must(os.ReadFile("../../docs/delayed-jobs.md"))(t)
	var examples []string
	for _, found := range regexp.MustCompile("(?s)```json\n(.*?)\n```").FindAllSubmatch(document, -1) {
		examples = append(examples, string(found[1]))
	}
	if len(examples) != 9 {
		t.Fatalf("%d examples, want 9", len(examples))
	}
	b := newBench(t)
	var queued string
	b.Guard.Delay = func(_ context.Context, job guard.Job) (err error) {
		queued, err = Body(job)
		return err
	}
	for i := range 12 {
		testkit.Must(b.Guard.Decide(t.Context(), guard.Request{UserID: "server1", Activity: "update_member_role", RequestID: fmt.Sprint(i)}))(t)
	}
	b.answers(4*time.Second, examples[0], examples[1])
	if diff := cmp.Diff(examples[2], queued); diff != "" {
		t.Errorf("the message (-document +real):\n%s", diff)
	}
	for i, at := range []time.Duration{4 * time.Second, 6 * time.Second, 10200 * time.Millisecond} {
		b.answers(at, examples[3+2*i], examples[4+2*i])
	}
}

// answers checks the guard's answer to an event, at a time after the start.
func (b *bench) answers(at time.Duration, event, want string) {
	b.t.Helper()
	b.now = start + at.Milliseconds()
	got, err := b.Guard.Invoke(b.t.Context(), []byte(event))
	if err != nil {
		b.t.Fatalf("%s: %v", event, err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		b.t.Errorf("%s (-document +real):\n%s", event, diff)
	}
}
