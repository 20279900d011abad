package guard_test

import (
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// The rules have the order of the package comment. In each row two rules match,
// and the first one decides.
func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	for name, tt := range map[string]struct {
		event string
		mode  Mode
		want  string // the reason; or the field of a ValidationError
	}{
		"bad input beats a bypass role":         {`{"count": 0, "roles": ["admin"]}`, Enforce, "count"},
		"bad input beats mode off":              {`{"count": 0}`, Off, "count"},
		"bad input beats an unlimited activity": {`{"activity": "like", "count": 0}`, Enforce, "count"},
		"bad input beats shadow mode":           {`{"count": 11}`, Shadow, "count"},
		"mode off beats a bypass role":          {`{"roles": ["admin"]}`, Off, "unlimited"},
		"unlimited beats a bypass role":         {`{"activity": "like", "roles": ["admin"]}`, Enforce, "unlimited"},
		"unlimited beats shadow mode":           {`{"activity": "like"}`, Shadow, "unlimited"},
		"a bypass role beats the limit":         {`{"roles": ["admin"], "count": 11}`, Enforce, "bypassed"},
		"a bypass role beats shadow mode":       {`{"roles": ["admin"], "count": 11}`, Shadow, "bypassed"},
		"a bypass role beats an outage":         {`{"roles": ["admin"]}`, Enforce, "bypassed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Mode, b.DenyOutage, b.store.away = tt.mode, true, errAway
			got, err := b.ask(tt.event)
			if err != nil {
				b.wantInvalid(tt.event, tt.want, err)
			} else if got["reason"] != tt.want || got["allowed"] != true {
				t.Errorf("%s: %v, want %s", tt.event, got, tt.want)
			}
			if b.store.asked != 0 {
				t.Errorf("%s: %d requests, want none", tt.event, b.store.asked)
			}
		})
	}
}

// huge is a count far above every limit.
const huge = `"count": 9000000000000000`

// An exempt caller may use any op and any count, and gets no figures. It makes
// no difference how the activity counts otherwise.
func TestAnExemptCallerMayUseAnyOpAndCount(t *testing.T) {
	for name, tt := range map[string]struct {
		guard    limits.Guard
		activity string
		more     string
		mode     Mode
		reason   string
	}{
		"unlimited":              {cricket.Posts, "like", "", Enforce, "unlimited"},
		"bypassed":               {cricket.Posts, "create_post", `, "roles": ["user", "admin"]`, Enforce, "bypassed"},
		"off":                    {cricket.Posts, "create_post", "", Off, "unlimited"},
		"bypassed, with a queue": {cricket.Jobs, "update_member_role", `, "roles": ["admin"]`, Enforce, "bypassed"},
		"off, with a queue":      {cricket.Jobs, "update_member_role", "", Off, "unlimited"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Guard, b.Mode = tt.guard, tt.mode
			for op, members := range map[string]string{
				"check":   huge,
				"status":  huge,
				"reset":   huge,
				"release": `"count": 1000000, "at": 1700000040000, "requestId": "r1"`,
				"renew":   `"count": 1000000, "at": 1700000040000, "requestId": "r1"`,
			} {
				want := fields{"allowed": true, "reason": tt.reason, "activity": tt.activity, "op": op}
				if op == "check" {
					want["granted"] = 9e15
				}
				if op == "renew" {
					want["granted"] = 1e6
				}
				b.want(`{"op": "`+op+`", "activity": "`+tt.activity+`", `+members+tt.more+`}`, want)
			}
			b.want(`{"activity": "`+tt.activity+`", "count": 3, "partial": true`+tt.more+`}`,
				fields{"allowed": true, "reason": tt.reason, "activity": tt.activity, "granted": 3})
			if b.store.asked != 0 {
				t.Errorf("%d requests, want none", b.store.asked)
			}
		})
	}
}

func TestABypassRoleMatchesExactly(t *testing.T) {
	b := newBench(t)
	for _, roles := range []string{`["admin"]`, `["user", "admin"]`, `["admin", "user"]`} {
		b.want(`{"roles": `+roles+`, "count": 11}`, fields{"allowed": true, "reason": "bypassed", "granted": 11})
	}
	b.want(`{"roles": ["user", "Admin", ""]}`, counted(1, 1))
}

// An operator's mode "off" can be undone, but MODE=off can't.
func TestModeOffOfTheHandlerBeatsALiveMode(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "enforce"}}})
		b.reasons(`{}`, "ok")
		b.Mode = Off
		b.reasons(`{}`, "unlimited")
		b.now = b.now.Add(time.Minute)
		before := s.looks
		b.reasons(`{}`, "unlimited")
		if s.looks != before {
			t.Error("a handler that is off reads the live limits")
		}
	})
}

func TestShadowModeRefusesNobody(t *testing.T) {
	b := newBench(t)
	b.Mode, b.RefusalIsError = Shadow, true
	b.want(`{"count": 9}`, counted(9, 9))
	b.want(`{"count": 2}`, figures(true, "shadow", 9, fields{"granted": 0, "waitTime": 60000}))
	b.want(`{"op": "status", "count": 2}`, figures(true, "shadow", 9, fields{"op": "status", "waitTime": 60000}))
	b.want(`{"count": 2, "partial": true}`, figures(true, "shadow", 10, fields{"granted": 1, "waitTime": 60000, "receipt": true, "crossed": 100}))
}

func TestShadowModeAllowsInAnOutage(t *testing.T) {
	for _, deny := range []bool{false, true} {
		b := newBench(t)
		b.Mode, b.RefusalIsError, b.DenyOutage = Shadow, true, deny
		b.want(`{"count": 10}`, counted(10, 10))
		b.store.away = errAway
		b.now = start.Add(2 * time.Second)
		b.want(`{"count": 2}`, figures(true, "unavailable", 10, fields{"granted": 0, "waitTime": 58000}))
	}
}
