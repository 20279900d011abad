package guard_test

import (
	"fmt"
	"testing"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

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
		mode  Mode
		event string
		want  fields
	}{
		"enforced":                {Enforce, `"count":2`, fields{"limitedBy": "b", "limit": 5.0, "allowed": false, "reason": "limited", "waitTime": 360_000.0}},
		"a status":                {Enforce, `"op":"status","count":2`, fields{"limitedBy": "room.hour", "limit": 6.0, "allowed": false, "reason": "limited", "waitTime": 2_760_000.0}},
		"in shadow mode":          {Shadow, `"count":2`, fields{"limitedBy": "room.hour", "limit": 6.0, "allowed": true, "reason": "shadow", "waitTime": 2_760_000.0}},
		"a status in shadow mode": {Shadow, `"op":"status","count":2`, fields{"limitedBy": "room.hour", "limit": 6.0, "allowed": true, "reason": "shadow", "waitTime": 2_760_000.0}},
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
