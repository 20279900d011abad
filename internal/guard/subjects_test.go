package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// secret is the room of these tests. No log, no metric and no error may contain it.
const secret = "canary-user-4711-room"

// rooms is a guard whose messages count for a user and a room.
var rooms = limits.Guard{Name: "rooms-guard", Message: "Too many.", Activities: []limits.Activity{
	{Name: "write", Limit: policy.Must("3/1m"), Tiers: limits.Tiers{"pro": policy.Must("9/1m")}, Subjects: []limits.Subject{
		{Name: "room", Limit: policy.Must("4/1m"), Tiers: limits.Tiers{"pro": policy.Must("12/1m")}},
		{Name: "tenant", Limit: policy.Must("minute: 20/1m, day: 100/day in Europe/Berlin"), Optional: true},
	}},
	{Name: "export", Limit: policy.Must("9/1d"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("log 1/10m")}}},
	{Name: "plain", Limit: policy.Must("9/1m")},
}}

func TestSubjects(t *testing.T) {
	b := newBench(t)
	b.Guard = rooms
	for i, step := range []struct{ event, want string }{
		{`"activity":"write","requestId":"a","count":3,"subjects":{"room":"` + secret + `"}`,
			`"allowed":true,"reason":"ok"@"limit":4,"activityCount":3,"remaining":1@"granted":3,"at":1700000040000,"requestId":"a"@"limits":[{"name":"write","limit":3,"activityCount":3,@{"name":"room","limit":4,"activityCount":3,`},
		{`"activity":"write","requestId":"a","count":3,"subjects":{"room":"` + secret + `"}`, `"reason":"duplicate"`},
		{`"activity":"write","subjects":{"room":"r2"}`, `"allowed":false,"reason":"limited"@"limitedBy":"write"@"message":"Too many."`},
		{`"activity":"write","tier":"pro","subjects":{"room":"r2","tenant":"t1"}`, `"allowed":true@{"name":"room","limit":12,"activityCount":1,@{"name":"tenant.minute","limit":20,"activityCount":1@{"name":"tenant.day","limit":100`},
		{`"activity":"write","op":"status","subjects":{"room":"` + secret + `"}`, `"op":"status"@{"name":"room","limit":4,"activityCount":3,"remaining":1,`},
		{`"activity":"write","op":"release","at":1700000040000,"requestId":"a","count":2,"subjects":{"room":"` + secret + `"}`, `{"name":"write","limit":3,"activityCount":2@{"name":"room","limit":4,"activityCount":1,`},
		{`"activity":"write","op":"reset"`, `"op":"reset","limit":3,"activityCount":0`},
		{`"activity":"write","op":"status","subjects":{"room":"` + secret + `"}`, `{"name":"room","limit":4,"activityCount":1,`},
		{`"activity":"export","requestId":"e","subjects":{"room":"r1"}`, `"allowed":true@"heldUntil":1700000640000`},
		{`"activity":"export","requestId":"f","subjects":{"room":"r1"}`, `"allowed":false@"limitedBy":"room"`},
		{`"activity":"export","op":"renew","at":1700000040000,"requestId":"e","subjects":{"room":"r1"}`, `"allowed":true@"op":"renew"@"heldUntil":1700000640000`},
		{`"activity":"export","op":"renew","at":1700000040000,"requestId":"x","subjects":{"room":"r1"}`, `"allowed":false,"reason":"expired"`},
	} {
		out, err := b.Invoke(t.Context(), []byte(`{"userId":"`+canary+`",`+step.event+`}`))
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		for want := range strings.SplitSeq(step.want, "@") {
			if !strings.Contains(string(out), want) {
				t.Errorf("step %d: %s\n got %s\nwant %s", i, step.event, out, want)
			}
		}
	}
}

func TestWrongSubjects(t *testing.T) {
	b := newBench(t)
	b.Guard = rooms
	for event, want := range map[string]string{
		`"activity":"write"`:                                                                                   "subjects has no room, want the id of each of: room",
		`"activity":"write","subjects":{"room":"r 1"}`:                                                         "subjects has a wrong id for room, want 1 to 128 characters",
		`"activity":"write","subjects":{"room":"r","tenant":""}`:                                               "subjects has a wrong id for tenant",
		`"activity":"write","subjects":{"room":"r","house":"h"}`:                                               "subjects has an unknown name, want those of the activity: room, tenant",
		`"activity":"write","subjects":{"room":"r"},"partial":true`:                                            "partial does not go with subjects",
		`"activity":"write","tier":"pro","count":5,"subjects":{"room":"r","tenant":"` + secret + `"},"op":"x"`: "op is",
		`"activity":"write","subjects":{"room":"r","room":"s"}`:                                                "subjects",
		`"activity":"write","subjects":["room"]`:                                                               "subjects is something else, want an object whose values are texts",
		`"activity":"write","subjects":null`:                                                                   "subjects",
		`"activity":"write","subjects":{"room":7}`:                                                             "subjects is something else, want an object",
		`"activity":"plain","subjects":{"room":"` + secret + `"}`:                                              "subjects goes only with activities that have subjects",
		`"activity":"export","count":2,"subjects":{"room":"` + secret + `"}`:                                   "count is 2, want at most 1, the limit of room: waiting would never help",
		`"activity":"write","op":"renew","at":1,"requestId":"a","subjects":{"room":"r"}`:                       "op is renew, want another one",
	} {
		_, err := b.Invoke(t.Context(), []byte(`{"userId":"`+canary+`",`+event+`}`))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) || strings.HasSuffix(err.Error(), ", ") {
			t.Errorf("%s: %v, want an error that contains %s", event, err, want)
		}
	}
	if b.store.asked != 0 {
		t.Errorf("%d requests, want none", b.store.asked)
	}
}

// In shadow mode a room that refuses counts nothing, and later subjects are read.
func TestSubjectsInShadowMode(t *testing.T) {
	b := newBench(t)
	b.Guard = rooms
	b.Mode = "shadow"
	event := []byte(`{"userId":"` + canary + `","activity":"write","count":2,"tier":"none","subjects":{"room":"r","tenant":"t"}}`)
	for i, want := range []string{`"allowed":true,"reason":"ok"`, `"allowed":true,"reason":"shadow"@"limitedBy":"write"@"name":"tenant.day","limit":100,"activityCount":2,`} {
		out, err := b.Invoke(t.Context(), event)
		for want := range strings.SplitSeq(want, "@") {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("check %d: %s, %v, want %s", i, out, err, want)
			}
		}
		b.now = b.now.Add(2 * time.Second)
	}
}

// In an outage an instance decides about all subjects alone.
func TestSubjectsInAnOutage(t *testing.T) {
	b := newBench(t)
	b.Guard = rooms
	b.store.away = errAway
	admitted := 0
	for i := range 6 {
		out, err := b.Invoke(t.Context(), []byte(`{"userId":"u`+string(rune('0'+i))+`","activity":"write","subjects":{"room":"r"}}`))
		if err != nil || !strings.Contains(string(out), `"reason":"unavailable"`) {
			t.Fatalf("%s, %v", out, err)
		}
		if strings.Contains(string(out), `"allowed":true`) {
			admitted++
		}
	}
	if admitted != 4 {
		t.Errorf("%d are admitted alone, want the 4 of the room", admitted)
	}
}
