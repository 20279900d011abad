package guard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
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
	b := newBench(t).guarding(rooms)
	for _, step := range []struct{ event, want string }{
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
		b.says(step.event, step.want)
	}
}

func TestWrongSubjects(t *testing.T) {
	b := newBench(t).guarding(rooms)
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
	b := newBench(t).guarding(rooms)
	b.Mode = "shadow"
	for _, want := range []string{`"allowed":true,"reason":"ok"`, `"allowed":true,"reason":"shadow"@"limitedBy":"write"@"name":"tenant.day","limit":100,"activityCount":2,`} {
		b.says(`"activity":"write","count":2,"tier":"none","subjects":{"room":"r","tenant":"t"}`, want)
		b.now = b.now.Add(2 * time.Second)
	}
}

// In an outage an instance decides about all subjects alone.
func TestSubjectsInAnOutage(t *testing.T) {
	b := newBench(t).guarding(rooms)
	b.store.away = errAway
	admitted := 0
	for i := range 6 {
		got := b.answer(fmt.Sprintf(`{"userId":"u%d","activity":"write","subjects":{"room":"r"}}`, i))
		if got["reason"] != "unavailable" {
			t.Fatal(got)
		}
		if got["allowed"] == true {
			admitted++
		}
	}
	if admitted != 4 {
		t.Errorf("%d are admitted alone, want the 4 of the room", admitted)
	}
}

// of returns a guard whose only activity, act, has these limits of the user, the room and
// the tenant; an empty one is left out.
func of(user, room, tenant string) limits.Guard {
	a := limits.Activity{Name: "act", Limit: policy.Must(user)}
	for i, text := range []string{room, tenant} {
		if text != "" {
			a.Subjects = append(a.Subjects, limits.Subject{Name: []string{"room", "tenant"}[i], Limit: policy.Must(text)})
		}
	}
	return limits.Guard{Name: "g", Message: "m", Activities: []limits.Activity{a}}
}

const both = `"activity":"act","subjects":{"room":"r","tenant":"t"}`

// HeldUntil is when the first of the logs stops to count the action, no matter whose log it
// is. From then on, not all of them limit the action any longer.
func TestHeldUntilIsThatOfTheShortestLog(t *testing.T) {
	for _, guard := range []limits.Guard{
		of("log 9/10m", "log 9/1h", "log 9/2h"), of("log 9/1h", "log 9/10m", "log 9/2h"), of("log 9/2h", "log 9/1h", "log 9/10m"),
		of("9/1m", "log 9/10m", "log 9/1h"), of("log 9/10m", "9/1m", "9/1m"), of("9/1m", "9/1m", "log 9/10m"),
	} {
		b := newBench(t).guarding(guard)
		for _, op := range []string{`"op":"check"`, `"op":"renew","at":1700000040000`} {
			got, err := b.ask(`{` + both + `,"requestId":"r",` + op + `}`)
			if err != nil || got["heldUntil"] != 1_700_000_640_000.0 {
				t.Errorf("%+v: %s: %v, %v, want 10 minutes", guard.Activities, op, got, err)
			}
		}
	}
}

// A reset clears the user alone, even if it names the subjects of the check.
func TestAResetLeavesSubjectsAlone(t *testing.T) {
	for _, event := range []string{both, `"activity":"act"`, `"activity":"act","subjects":{"tenant":"t"}`} {
		b := newBench(t).guarding(of("9/1m", "9/1m", "9/1m"))
		b.mustAsk(`{` + both + `,"count":4}`)
		b.mustAsk(`{` + event + `,"op":"reset"}`)
		got := b.mustAsk(`{` + both + `,"op":"status"}`)
		for i, want := range []float64{0, 4, 4} {
			if one := got["limits"].([]any)[i].(fields); one["activityCount"] != want {
				t.Errorf("after the reset %s: %v, want %v", event, one, want)
			}
		}
	}
}

// A count is at most the lowest limit, whichever part has it, and the error names that one.
// In shadow mode it is refused by that limit, and counts nowhere.
func TestTheLowestLimitBoundsTheCount(t *testing.T) {
	for _, tt := range []struct{ user, room, tenant, of, by string }{
		{"5/1m", "9/1m", "9/1m", "the limit", "act"},
		{"9/1m", "5/1m", "9/1m", "the limit of room", "room"},
		{"9/1m", "9/1m", "5/1m", "the limit of tenant", "tenant"},
	} {
		b := newBench(t).guarding(of(tt.user, tt.room, tt.tenant))
		_, err := b.ask(`{` + both + `,"count":6}`)
		if want := "count is 6, want at most 5, " + tt.of + ": waiting would never help, but partial grants what fits"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		b.mustAsk(`{` + both + `,"count":5}`)
	}
	for i, by := range []string{"act", "room", "tenant"} {
		withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
			b.Guard = of("9/1m", "9/1m", "9/1m")
			b.Live.Guards = limits.Guards{b.Guard}
			name := []string{"act", "act/room", "act/tenant"}[i]
			tried := map[string]live.Override{"act": {Mode: "shadow"}}
			tried[name] = live.Override{Limit: "5/1m", Mode: tried[name].Mode}
			s.Stored, _ = live.Settings{Activities: tried}.Stored(1)
			testkit.OK(t, b.Live.Read(t.Context()))
			if got := b.mustAsk(`{` + both + `,"count":6}`); got["reason"] != "shadow" || got["limitedBy"] != by || got["limit"] != 5.0 {
				t.Errorf("%v, want shadow by %s", got, by)
			}
			for _, one := range b.mustAsk(`{` + both + `,"op":"status"}`)["limits"].([]any) {
				if one.(fields)["activityCount"] != 0.0 {
					t.Errorf("a count of 6 under 5/1m of %s: %v is counted", by, one)
				}
			}
		})
	}
}

// An optional subject that is left out changes nothing for those after it.
func TestASubjectBehindOneThatIsLeftOut(t *testing.T) {
	b := newBench(t).guarding(of("9/1m", "8/1m", "4/1m"))
	b.Guard.Activities[0].Subjects[0].Optional = true
	for i := range 5 {
		got := b.mustAsk(`{"activity":"act","subjects":{"tenant":"t"}}`)
		if fmt.Sprint(got["allowed"]) != fmt.Sprint(i < 4) {
			t.Errorf("check %d: %v", i+1, got)
		}
	}
	b.Mode = live.Shadow
	if _, err := b.ask(`{"activity":"act","subjects":{"tenant":"t2"},"count":5}`); err == nil {
		t.Error("a count of 5 is above the limit of the tenant in the code, and is no error")
	}
}

// labelled are activities whose answers have a display.
var labelled = limits.Guard{Name: "g", Message: "m", Activities: []limits.Activity{
	{Name: "one", Label: "L", Limit: policy.Must("10/1m")},
	{Name: "several", Label: "L", Limit: policy.Must("b: 10/1m, a: 6/1d"), Tiers: limits.Tiers{"pro": policy.Must("a: 8/1d, b: 20/1m")}},
	{Name: "pair", Label: "L", Limit: policy.Must("10/1m"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("6/1m")}}},
	{Name: "all", Label: "L", Limit: policy.Must("b: 10/1m, a: 9/1d"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("b: 6/1m, a: 7/1d")}}},
	{Name: "shared", Label: "L", Group: "both", Limit: policy.Must("writes: 10/1m")},
}}

// The display has the figures of the user's limit that comes first in the code, whichever
// is the tightest, and however a live limit or a tier is written.
func TestTheDisplayIsAboutTheUsersFirstLimit(t *testing.T) {
	changed := map[string]live.Override{
		"several": {Limit: "a: 7/1d, b: 30/1m"}, "pair": {Limit: "30/1m"}, "pair/room": {Limit: "7/1m"}, "all": {Limit: "a: 9/1d, b: 30/1m"},
		"both.writes": {Limit: "30/1m"}, "one": {Limit: "30/1m"},
	}
	for name, tt := range map[string]struct {
		activity, more string
		code, live     string // with 5 actions counted
		full           string // after a refusal by another limit, and by none if it is the only one
	}{
		"a limit alone":        {"one", "", "L: 5/10", "L: 5/30", "L: 5/10"},
		"several":              {"several", "", "L: 5/10", "L: 5/30", "L: 5/10"},
		"several, with a tier": {"several", `,"tier":"pro"`, "L: 5/20", "L: 5/20", "L: 5/20"},
		"a room":               {"pair", `,"subjects":{"room":"r"}`, "L: 5/10", "L: 5/30", "L: 5/10"},
		"several, and a room":  {"all", `,"subjects":{"room":"r"}`, "L: 5/10", "L: 5/30", "L: 5/10"},
		"a limit of a group":   {"shared", "", "L: 5/10", "L: 5/30", "L: 5/10"},
	} {
		t.Run(name, func(t *testing.T) {
			withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
				b.guarding(labelled)
				display := func(what, event, want string) {
					t.Helper()
					if got := b.mustAsk(fmt.Sprintf(`{"activity":"%s"%s,%s}`, tt.activity, tt.more, event))["display"]; got != want {
						t.Errorf("%s: %q, want %q", what, got, want)
					}
				}
				display("a check", `"requestId":"r","count":5`, tt.code)
				display("a repeat", `"requestId":"r","count":5`, tt.code)
				display("a status", `"op":"status","count":6`, tt.code)
				display("a refusal", `"count":6`, tt.full)
				s.Stored, _ = live.Settings{Activities: changed}.Stored(1)
				testkit.OK(t, b.Live.Read(t.Context()))
				display("a live limit", `"op":"status"`, tt.live)
			})
		})
	}
}

// A room that refuses from memory leaves nothing to say about the user.
func TestARefusalFromMemoryDisplaysNoOtherLimit(t *testing.T) {
	b := newBench(t).guarding(labelled)
	event := `{"activity":"pair","subjects":{"room":"r"},"count":3}`
	b.mustAsk(event)
	b.mustAsk(event)
	asked := b.store.asked
	if got := b.mustAsk(event); got["limitedBy"] != "room" || got["display"] != nil || b.store.asked != asked {
		t.Errorf("%v after %d requests, want a refusal from memory without a display", got, b.store.asked-asked)
	}
}

// Three limits refuse, and the room's last longest. A status and a check in shadow mode
// have its figures. An enforced check has the figures of the part that refused first.
func TestWhichLimitRefuses(t *testing.T) {
	three := limits.Guard{Name: "g", Message: "m", Activities: []limits.Activity{
		{Name: "act", Limit: policy.Must("a: 5/1m, b: 5/10m"), Subjects: []limits.Subject{
			{Name: "room", Limit: policy.Must("minute: 5/1m, hour: 6/1h")},
			{Name: "tenant", Limit: policy.Must("5/2m")},
		}},
	}}
	const subjects = `,"subjects":{"room":"r","tenant":"t"}`
	for name, tt := range map[string]struct {
		mode  string
		event string
		want  fields
	}{
		"enforced":                {live.Enforce, `"count":2`, fields{"limitedBy": "b", "limit": 5.0, "allowed": false, "reason": "limited", "waitTime": 360_000.0}},
		"a status":                {live.Enforce, `"op":"status","count":2`, fields{"limitedBy": "room.hour", "limit": 6.0, "allowed": false, "reason": "limited", "waitTime": 2_760_000.0}},
		"in shadow mode":          {live.Shadow, `"count":2`, fields{"limitedBy": "room.hour", "limit": 6.0, "allowed": true, "reason": "shadow", "waitTime": 2_760_000.0}},
		"a status in shadow mode": {live.Shadow, `"op":"status","count":2`, fields{"limitedBy": "room.hour", "limit": 6.0, "allowed": true, "reason": "shadow", "waitTime": 2_760_000.0}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t).guarding(three)
			b.mustAsk(`{"activity":"act"` + subjects + `,"count":5}`)
			b.Mode = tt.mode
			got := b.mustAsk(`{"activity":"act"` + subjects + `,` + tt.event + `}`)
			for f, want := range tt.want {
				if got[f] != want {
					t.Errorf("%s is %v, want %v", f, got[f], want)
				}
			}
		})
	}
}

// A count above a limit that is tried would wait forever, so it is that limit that refuses.
func TestALimitThatNeverFitsRefuses(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		b.guarding(labelled)
		s.Stored, _ = live.Settings{Activities: map[string]live.Override{"all": {Mode: "shadow"}, "all/room": {Limit: "b: 6/1m, a: 3/1d"}}}.Stored(1)
		testkit.OK(t, b.Live.Read(t.Context()))
		got := b.mustAsk(`{"activity":"all","subjects":{"room":"r"},"count":5}`)
		if got["reason"] != "shadow" || got["limitedBy"] != "room.a" || got["limit"] != 3.0 || got["display"] != "L: 0/10" {
			t.Errorf("%v, want a refusal by room.a", got)
		}
	})
}
