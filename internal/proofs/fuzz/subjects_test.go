package fuzz_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// rooms counts messages for a user, a room and perhaps a tenant.
var rooms = cricket.Link(guards.Guard{Name: "rooms", Message: "m", Activities: []guards.Activity{
	{Name: "write", Limit: "9/1m", Subjects: []guards.Subject{
		{Name: "room", Limit: "2/1m", Tiers: guards.Tiers{"pro": "20/1m"}},
		{Name: "tenant", Limit: "minute: bucket 10/1m, day: 20/day in Asia/Kolkata", Optional: true},
	}},
	{Name: "export", Group: "content", Hold: true, Limit: "now: log 3/10m", Subjects: []guards.Subject{
		{Name: "room", Limit: "now: log 1/10m, writes: 5/1h cost 2"},
	}},
}})[0]

// An event that names a room is decided, or refused without a request to the table. The
// room's id is in no log line, no metric, no error and no answer. This also holds while
// the table is away, over HTTP, and at level DEBUG.
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
		keepsSecret(t, id, rest, inRoom(t, how, id, rest), func(other string) string { return inRoom(t, how, other, rest) })
	})
}

// inRoom sends an event about a room in one of eight ways. It returns all that the guard
// wrote, and the answer.
func inRoom(t *testing.T, how byte, id, rest string) (wrote string) {
	t.Helper()
	quoted, _ := json.Marshal(id) // never fails for a string
	event := []byte(`{"userId": "u1", "subjects": {"room": ` + string(quoted) + rest)
	b := newBench(rooms)
	if how&1 != 0 {
		b.Mode = live.Shadow
	}
	if how&2 != 0 {
		b.table.away, b.DenyOutage = true, how&1 == 0
	}
	if how&4 != 0 {
		var e events.LambdaFunctionURLRequest
		e.RequestContext.HTTP.Method, e.Body = "POST", string(event)
		var err error
		if event, err = json.Marshal(e); err != nil {
			t.Fatal(err)
		}
	}
	answer, _ := b.send(t, event)
	return b.wrote.String() + string(answer)
}
