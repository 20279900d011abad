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

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	app "github.com/cric-talk/guards/limits"
)

const now = 1_700_000_040_000 // when each event comes

// A bench is a guard, with all that it writes and the requests that it sends.
type bench struct {
	guard.Handler
	wrote    bytes.Buffer // log and metrics
	requests int
}

func newBench(g limits.Guard) *bench {
	b := new(bench)
	b.Handler = guard.Handler{
		Guard: g,
		Limiter: &ratelimit.Limiter{
			Store: counting{new(memstore.Store), &b.requests}, Memory: ratelimit.NewMemory(1 << 20),
			Now: func() time.Time { return time.UnixMilli(now) },
		},
		BypassRoles: []string{"admin"},
		Log:         slog.New(slog.NewJSONHandler(&b.wrote, nil)),
		Metrics:     &metrics.Batch{Writer: metrics.Writer{W: &b.wrote, Namespace: "Guards"}},
		Delay:       func(context.Context, guard.Job) error { return nil },
	}
	return b
}

// counting counts the requests to a store.
type counting struct {
	ratelimit.Store
	requests *int
}

func (c counting) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	*c.requests++
	return c.Store.Update(ctx, w)
}

func (c counting) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	*c.requests++
	return c.Store.Read(ctx, k)
}

func (c counting) Delete(ctx context.Context, k ratelimit.Key) error {
	*c.requests++
	return c.Store.Delete(ctx, k)
}

// guards are those of the app, and two whose activities are in one group, with costs, a
// log whose slots can be renewed, and receipts that are held.
var guards = func() limits.Guards {
	log, pace := policy.Must("now: log 3/10m, writes: 20/1h cost 5"), policy.Must("writes: 20/1h")
	linked, err := append(slices.Clone(limits.Guards(app.All)),
		limits.Guard{Name: "exports", Message: "m", Activities: []limits.Activity{{Name: "export", Group: "content", Limit: log, Hold: true}}},
		limits.Guard{Name: "writes", Message: "m", Activities: []limits.Activity{{Name: "write", Group: "content", Limit: pace}}},
	).Link()
	if err != nil {
		panic(err)
	}
	return linked
}()

// send sends an event three times, so that the last ones are refused by many
// limits. It returns the last answer, and all errors.
func (b *bench) send(t *testing.T, event []byte) (answer []byte, err error) {
	t.Helper()
	for range 3 {
		var again error
		answer, again = b.Invoke(t.Context(), event)
		err = errors.Join(err, again)
	}
	return answer, err
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
		for which := range guards {
			f.Add(byte(which), seed.id, seed.rest)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, id, rest string) {
		g := guards[int(which)%len(guards)]
		b := newBench(g)
		answer, err := b.send(t, eventOf(id, rest))
		if invalid, ok := errors.AsType[*input.ValidationError](err); ok {
			if b.requests > 0 {
				t.Fatalf("%s: %d requests to the table for an event that is refused with %q", eventOf(id, rest), b.requests, invalid)
			}
		} else if err != nil {
			t.Fatalf("%s: %v, want an answer or a ValidationError", eventOf(id, rest), err)
		} else {
			wantAnswer(t, id, answer)
		}
		wantSecret(t, b, id, rest, err)
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

// wantSecret checks that the id is in nothing that b wrote. A short id can be
// there by chance. So can one that the same event shows for another user, such
// as the name of an activity.
func wantSecret(t *testing.T, b *bench, id, rest string, err error) {
	t.Helper()
	if err != nil {
		b.wrote.WriteString(err.Error())
	}
	if len(id) < 8 || strings.Contains(rest, id) || !strings.Contains(b.wrote.String(), id) {
		return
	}
	other := newBench(b.Guard)
	if _, err := other.send(t, eventOf("other-user-0815", rest)); err != nil {
		other.wrote.WriteString(err.Error())
	}
	if !strings.Contains(other.wrote.String(), id) {
		t.Fatalf("%s: the user's id is shown: %s", eventOf(id, rest), &b.wrote)
	}
}
