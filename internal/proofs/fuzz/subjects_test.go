package fuzz_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// rooms counts messages for a user, a room and perhaps a tenant.
var rooms = func() limits.Guard {
	linked, err := limits.Guards{{Name: "rooms", Message: "m", Activities: []limits.Activity{
		{Name: "write", Limit: policy.Must("9/1m"), Subjects: []limits.Subject{
			{Name: "room", Limit: policy.Must("2/1m"), Tiers: limits.Tiers{"pro": policy.Must("20/1m")}},
			{Name: "tenant", Limit: policy.Must("minute: bucket 10/1m, day: 20/day in Asia/Kolkata"), Optional: true},
		}},
		{Name: "export", Group: "content", Hold: true, Limit: policy.Must("now: log 3/10m"), Subjects: []limits.Subject{
			{Name: "room", Limit: policy.Must("now: log 1/10m, writes: 5/1h cost 2")},
		}},
	}}}.Link()
	if err != nil {
		panic(err)
	}
	return linked[0]
}()

// away is a store that can't be reached.
type away struct{}

var errAway = errors.New("connection refused")

func (away) Update(context.Context, ratelimit.Write) (ratelimit.Item, bool, error) {
	return ratelimit.Item{}, false, errAway
}

func (away) Read(context.Context, ratelimit.Key) (ratelimit.Item, error) {
	return ratelimit.Item{}, errAway
}

func (away) Delete(context.Context, ratelimit.Key) error { return errAway }

// An event that names a room is decided, or refused without a request to the table. The
// room's id is in no log line, no metric, no error and no answer: not while the table is
// away, not over HTTP, and not at level DEBUG.
func FuzzSubject(f *testing.F) {
	for _, seed := range []struct{ id, rest string }{
		{"canary-room-4711", `}, "activity": "write"}`},
		{"canary-room-4711", `, "tenant": "t"}, "activity": "write", "count": 2, "tier": "pro", "requestId": "r"}`},
		{"canary-room-4711", `, "tenant": "t 1"}, "activity": "write"}`},
		{"canary-room-4711", `, "house": "h"}, "activity": "write"}`},
		{"canary-room-4711", `, "room": "r"}, "activity": "write"}`},
		{"canary-room-4711", `}, "activity": "write", "count": 3}`},
		{"canary-room-4711", `}, "activity": "write", "op": "status"}`},
		{"canary-room-4711", `}, "activity": "write", "op": "release", "at": 1700000040000, "requestId": "r"}`},
		{"canary-room-4711", `}, "activity": "write", "op": "reset"}`},
		{"canary-room-4711", `}, "activity": "write", "partial": true}`},
		{"canary-room-4711", `}, "activity": "export", "op": "renew", "at": 1700000040000, "requestId": "r"}`},
		{"canary-room-4711", `}, "activity": "export"}`},
		{"canary-room-4711", `}, "activity": "canary", "roles": ["admin"]}`},
		{"canary-room-4711", `: "x"}, "activity": "write"}`},
		{"canary room 4711", `}, "activity": "write"}`},
		{"canary-\x00\xff-room\n", `}, "activity": "write"}`},
		{`"}, "tier": "canary-room`, `}, "activity": "write"}`},
		{strings.Repeat("canary", 22), `}, "activity": "write"}`},
		{"", `}, "activity": "write"}`},
	} {
		for how := range byte(8) {
			f.Add(how, seed.id, seed.rest)
		}
	}
	f.Fuzz(func(t *testing.T, how byte, id, rest string) {
		b, wrote, err := visit(t, how, id, rest)
		if invalid, ok := errors.AsType[*input.ValidationError](err); ok && b.requests > 0 {
			t.Fatalf("%s: %d requests to the table for an event that is refused with %q", inRoom(id, rest), b.requests, invalid)
		}
		if len(id) < 8 || strings.Contains(rest, id) || !strings.Contains(wrote, id) {
			return
		}
		// It can be a word that the guard shows of any room.
		if _, other, _ := visit(t, how, "other-room-0815", rest); !strings.Contains(other, id) {
			t.Fatalf("%s: the room's id is shown: %s", inRoom(id, rest), wrote)
		}
	})
}

func inRoom(id, rest string) []byte {
	quoted, _ := json.Marshal(id) // never fails for a string
	return []byte(`{"userId": "u1", "subjects": {"room": ` + string(quoted) + rest)
}

// visit sends an event in one of eight ways, three times. It returns all that the guard
// wrote, with the answer and the errors.
func visit(t *testing.T, how byte, id, rest string) (b *bench, wrote string, err error) {
	t.Helper()
	b = newBench(rooms)
	b.Log = slog.New(slog.NewJSONHandler(&b.wrote, &slog.HandlerOptions{Level: slog.LevelDebug}))
	event := inRoom(id, rest)
	if how&1 != 0 {
		b.Mode = guard.Shadow
	}
	if how&2 != 0 {
		b.Limiter.Store, b.DenyOutage = away{}, how&1 == 0
	}
	if how&4 != 0 {
		var e events.LambdaFunctionURLRequest
		e.RequestContext.HTTP.Method, e.Body = "POST", string(event)
		if event, err = json.Marshal(e); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := b.send(t, event)
	if err != nil {
		b.wrote.WriteString(err.Error())
	}
	b.Metrics.Flush()
	return b, b.wrote.String() + string(answer), err
}
