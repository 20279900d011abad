package live_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// set applies settings with one live limit, of an activity of one of the guards or of one
// of its tiers. It returns the activity with the limits that are then in force.
func set(guards limits.Guards, activity, tier, limit string) (limits.Activity, error) {
	o := Override{Limit: limit}
	if tier != "" {
		o = Override{Tiers: map[string]string{tier: limit}}
	}
	l, problems := Settings{Activities: map[string]Override{activity: o}}.Limits(guards, nil)
	_, code, _ := guards.Activity(activity)
	now, _ := l.Activity(code)
	return now, errors.Join(problems...)
}

func TestSet(t *testing.T) {
	for _, tt := range []struct{ activity, tier, limit, inForce string }{
		{"create_post", "", "20/1m", "20/1m"},
		{"create_post", "", " fixed  20/60s", "20/1m"},
		{"create_post", "gold", "30/1m", "30/1m"},
		{"create_post", "premium", "30/1m", "30/1m"},
		{"pin", "", "log 50/12h", "log 50/12h"},
		{"ingest", "", "sliding 80/60m", "sliding 80/1h"},
		// If the text has no keep or ahead, the code's apply. A burst of the code
		// never applies.
		{"send_message", "", "bucket 1/2s", "bucket 1/2s keep 1h"},
		{"send_message", "", "bucket 1/2s keep 2h", "bucket 1/2s keep 2h"},
		{"send_message", "burst", "bucket 1/5s burst 9", "bucket 1/5s burst 9 keep 1h"},
		{"send_message", "burst", "bucket 1/5s", "bucket 1/5s keep 1h"},
		{"update_member_role", "", "reservoir 20/10s", "reservoir 20/10s ahead 15m"},
		{"update_member_role", "big", "reservoir 20/10s ahead 5m", "reservoir 20/10s ahead 5m"},
	} {
		a, err := set(cricket.All, tt.activity, tt.tier, tt.limit)
		if got := a.For(tt.tier).String(); err != nil || got != tt.inForce {
			t.Errorf("%s %s %q: %q is in force, %v, want %q", tt.activity, tt.tier, tt.limit, got, err, tt.inForce)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	for _, tt := range []struct{ activity, tier, limit, want string }{
		{"create_post", "", "20/1h", `create_post: a live limit keeps the kind, the window and the cost of the code's limit: window of "20/1h" is 1h, want 1m`},
		{"create_post", "gold", "20/1h", `create_post: tier "gold": a live limit keeps the kind, the window and the cost of the code's limit: window of "20/1h" is 1h, want 1m`},
		{"create_post", "", "minute: 20/1m, day: 99/1d", `has 1 limit and "minute: 20/1m, day: 99/1d" has 2`},
		{"ingest", "", "20/1m", `did you mean "sliding 20/1m"?`},
		{"ingest", "", "log 80/1h", `a live limit keeps the kind, the window and the cost of the code's limit: "log 80/1h" counts in another way than "sliding 50/1h"`},
		{"like", "", "20/1m", "an activity that has a limit"},
		{"create_pots", "", "20/1m", "create_pots"},
	} {
		_, err := set(cricket.All, tt.activity, tt.tier, tt.limit)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s %q: %v, want an error that contains %s", tt.activity, tt.tier, tt.limit, err, tt.want)
		}
	}
}

// guarding returns a guard with the one activity "act".
func guarding(limit policy.Policy) []limits.Guard {
	return []limits.Guard{{Name: "g", Message: "m", Activities: []limits.Activity{{Name: "act", Limit: limit}}}}
}

// Live limits accept exactly what limits.go accepts as a tier, for every kind
// of policy. A live limit without a cost has the code's cost.
func TestLiveLimitsAndTiersAcceptTheSame(t *testing.T) {
	var texts []string
	for _, k := range policy.Kinds() {
		for _, text := range k.Examples {
			texts = append(texts, text, "a: "+text+", b: 10/1m", "b: 5/1m, a: "+text, "a: "+text+", b: sliding 9/1m")
		}
	}
	accepted := 0
	for _, code := range texts {
		p, err := policy.Parse(code)
		if err != nil {
			continue
		}
		for _, text := range texts {
			live, err := policy.Parse(text)
			ok := err == nil && policy.CompatibleTiers(p, live) == nil
			if err == nil && !strings.Contains(text, "cost") {
				live, err = live.WithDefaults(p)
				ok = err == nil && policy.CompatibleTiers(p, live) == nil
			}
			a, err := set(guarding(p), "act", "", text)
			switch {
			case (err == nil) != ok:
				t.Errorf("%q instead of %q: %v, want accepted: %v", text, code, err, ok)
			case ok:
				accepted++
				if err := policy.CompatibleTiers(a.Limit, p); err != nil {
					t.Errorf("%q instead of %q is in force: %v", text, code, err)
				}
			case !a.Limit.Equal(p):
				t.Errorf("%q instead of %q is refused, and %q is in force", text, code, a.Limit)
			}
		}
	}
	if accepted < len(texts) {
		t.Errorf("only %d pairs were accepted", accepted)
	}
}
