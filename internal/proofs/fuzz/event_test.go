// Package fuzz_test sends hostile events to whole guards, and runs every fuzz
// target of the project for a long time.
package fuzz_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	page "github.com/cric-talk/guards/limits"
)

const now = 1_700_000_040_000 // when each event comes

// A bench is a guard with its table, and all that it writes.
type bench struct {
	guard.Handler
	table store
	wrote bytes.Buffer // log, metrics, and errors
}

func newBench(g limits.Guard) *bench {
	b := new(bench)
	b.Handler = guard.Handler{
		Guard: g,
		Limiter: &ratelimit.Limiter{
			Store: &b.table, Memory: ratelimit.NewMemory(1 << 20), Now: func() time.Time { return time.UnixMilli(now) },
		},
		BypassRoles: []string{"admin"},
		Log:         slog.New(slog.NewJSONHandler(&b.wrote, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Metrics:     &metrics.Batch{Writer: metrics.Writer{W: &b.wrote, Namespace: "Guards"}},
		Delay:       func(context.Context, guard.Job) error { return nil },
	}
	return b
}

// A store counts the requests to it. If it is away, it can't be reached.
type store struct {
	memstore.Store
	requests int
	away     bool
}

func (s *store) reach() error {
	s.requests++
	if s.away {
		return errors.New("connection refused")
	}
	return nil
}

func (s *store) Update(ctx context.Context, w ratelimit.Write) (item ratelimit.Item, done bool, err error) {
	if err = s.reach(); err == nil {
		item, done, err = s.Store.Update(ctx, w)
	}
	return item, done, err
}

func (s *store) Read(ctx context.Context, k ratelimit.Key) (item ratelimit.Item, err error) {
	if err = s.reach(); err == nil {
		item, err = s.Store.Read(ctx, k)
	}
	return item, err
}

func (s *store) Delete(ctx context.Context, k ratelimit.Key) error {
	return errors.Join(s.reach(), s.Store.Delete(ctx, k))
}

// all are the guards of the app, and two whose activities are in one group, with costs, a
// log whose slots can be renewed, and receipts that are held.
var all = cricket.Link(append(slices.Clone(page.All),
	guards.Guard{Name: "exports", Message: "m", Activities: []guards.Activity{{Name: "export", Group: "content", Limit: "now: log 3/10m, writes: 20/1h cost 5", Hold: true}}},
	guards.Guard{Name: "writes", Message: "m", Activities: []guards.Activity{{Name: "write", Group: "content", Limit: "writes: 20/1h"}}},
)...)

// send sends an event three times, so that the last ones are refused by many
// limits. It returns the last answer, and all errors.
func (b *bench) send(t *testing.T, event []byte) (answer []byte, err error) {
	t.Helper()
	for range 3 {
		var again error
		answer, again = b.Invoke(t.Context(), event)
		err = errors.Join(err, again)
	}
	b.Metrics.Flush()
	if err != nil {
		b.wrote.WriteString(err.Error())
	}
	if invalid(err) && b.table.requests > 0 {
		t.Fatalf("%s: %d requests to the table for an event that is refused with %q", event, b.table.requests, err)
	}
	return answer, err
}

func invalid(err error) bool {
	_, ok := errors.AsType[*input.ValidationError](err)
	return ok
}

// keepsSecret checks that an id is in nothing that a guard wrote. Show returns what a guard
// writes of the same event about another id. A short id can be there by chance. So can one
// that the guard shows of any id, such as the name of an activity.
func keepsSecret(t *testing.T, id, rest, wrote string, show func(id string) string) {
	t.Helper()
	if len(id) >= 8 && !strings.Contains(rest, id) && strings.Contains(wrote, id) && !strings.Contains(show("other-id-0815"), id) {
		t.Fatalf("the id %q is shown, and the event goes on with %s: %s", id, rest, wrote)
	}
}

// An event that begins with a user's id is either decided about that user, or
// refused with a ValidationError and without a request to the table. The id is
// in no log line, no metric and no error.
func FuzzEvent(f *testing.F) {
	for _, seed := range []struct{ id, rest string }{
		{"canary-user-4711", `, "activity": "create_post"}`},
		{"canary-user-4711", `, "activity": "update_member_role", "job": {"a": 1, "a": 2}}`},
		{"canary-user-4711", `, "activity": "update_member_role", "readyAt": 1700000050000, "job": "x"}`},
		{"canary-user-4711", `, "activity": "pin", "count": 101, "partial": true, "tier": "x", "roles": ["a"]}`},
		{"canary-user-4711", `, "activity": "send_message", "op": "release", "at": 1700000040000, "requestId": "r"}`},
		{"canary-user-4711", `, "activity": "ingest", "op": "status"} {}`},
		{"canary-user-4711", `, "activity": "pin", "op": "renew", "at": 1700000040000, "requestId": "r", "count": 3}`},
		{"canary-user-4711", `, "activity": "export", "op": "renew", "at": 9214646399999, "requestId": "r", "count": 1000000}`},
		{"canary-user-4711", `, "activity": "export", "count": 3, "requestId": "content r"}`},
		{"canary-user-4711", `, "activity": "write", "count": 4, "partial": true}`},
		{"canary user", `, "activity": "like"}`},
		{"canary-\x00\xff", `, "userId": "u1", "activity": "view", "roles": ["admin"]}`},
		{strings.Repeat("canary", 22), `, "activity": "add_comment", "requestId": "` + strings.Repeat("r", 65) + `"}`},
	} {
		for which := range all {
			f.Add(byte(which), seed.id, seed.rest)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, id, rest string) {
		b := newBench(all[int(which)%len(all)])
		answer, err := b.send(t, eventOf(id, rest))
		switch {
		case err == nil:
			wantAnswer(t, id, answer)
		case !invalid(err):
			t.Fatalf("%s: %v, want an answer or a ValidationError", eventOf(id, rest), err)
		}
		keepsSecret(t, id, rest, b.wrote.String(), func(other string) string {
			b := newBench(b.Guard)
			_, _ = b.send(t, eventOf(other, rest))
			return b.wrote.String()
		})
	})
}

func eventOf(id, rest string) []byte {
	quoted, _ := json.Marshal(id) // never fails for a string
	return []byte(`{"userId": ` + string(quoted) + rest)
}

// wantAnswer checks an answer about a user.
func wantAnswer(t *testing.T, id string, answer []byte) {
	t.Helper()
	var got struct {
		StatusCode int `json:"statusCode"`
		UserID     string
		Allowed    *bool
		Remaining  int64
		WaitTime   int64
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatalf("the answer %q is no JSON: %v", answer, err)
	}
	if got.StatusCode != 0 { // the rest made an HTTP event of it
		return
	}
	if got.UserID != id || got.Allowed == nil || got.Remaining < 0 || got.WaitTime < 0 {
		t.Fatalf("the answer for %q is %s", id, answer)
	}
	if err := input.CheckUserID(id); err != nil {
		t.Fatalf("the user id %q is accepted: %v", id, err)
	}
}
