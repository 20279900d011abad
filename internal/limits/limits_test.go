package limits_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

const (
	short = "Rate limit exceeded: Too many requests in a short period"
	long  = "Rate limit exceeded: Too many requests. Please try again later."
)

// Callers were promised these limits. To change one, change this table too.
func TestLimitsByTheMinute(t *testing.T) {
	for _, want := range []struct {
		guard, message, activities string
		limit, premium             string // empty: unlimited
	}{
		{"posts-guard", short, "create_post update_post delete_post", "10/1m", "20/1m"},
		{"posts-guard", short, "like view", "", ""},
		{"comments-guard", long, "add_comment update_comment delete_comment", "60/1m", "60/1m"},
		{"rooms-guard", short, "create_room update_room delete_room", "10/1m", "20/1m"},
		{"room-message-guard", long, "create_room_message update_room_message delete_room_message", "60/1m", "60/1m"},
	} {
		for name := range strings.FieldsSeq(want.activities) {
			a, ok := find(want.guard).Activity(name)
			if !ok || find(want.guard).Message != want.message {
				t.Errorf("%s of %s is %+v, %v", name, want.guard, a, find(want.guard).Message)
			}
			for tier, limit := range map[string]string{"": want.limit, "premium": want.premium, "gold": want.limit} {
				if got := a.For(tier); got.String() != limit || got.IsZero() != a.Unlimited {
					t.Errorf("%s of tier %q has the limit %q, want %q", name, tier, got, limit)
				}
			}
		}
	}
}

func TestOtherLimits(t *testing.T) {
	for name, want := range map[string]struct {
		message  string
		activity Activity
	}{
		"pins-guard": {"Pin limit reached (100/12h). Skipped remaining pins.", Activity{
			Name: "pin", Limit: policy.Must("log 100/12h"), Label: "12-hour pins",
		}},
		"chat-guard": {long, Activity{
			Name: "send_message", Limit: policy.Must("bucket 1/5s keep 1h"), Tiers: Tiers{"burst": policy.Must("bucket 1/5s burst 3 keep 1h")},
		}},
		"ingest-guard": {long, Activity{Name: "ingest", Limit: policy.Must("sliding 50/1h")}},
		"jobs-guard":   {long, Activity{Name: "update_member_role", Limit: policy.Must("reservoir 10/10s ahead 15m")}},
	} {
		if diff := cmp.Diff(Guard{Name: name, Message: want.message, Activities: []Activity{want.activity}}, find(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func find(name string) Guard {
	for _, g := range All {
		if g.Name == name {
			return g
		}
	}
	return Guard{}
}

func TestEveryGuardIsValid(t *testing.T) {
	guards := map[string]string{} // by activity
	for _, g := range All {
		if err := g.Validate(); err != nil {
			t.Error(err)
		}
		for _, a := range g.Activities {
			if other := guards[a.Name]; other != "" {
				t.Errorf("%s is an activity of %s and of %s", a.Name, other, g.Name)
			}
			guards[a.Name] = g.Name
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	ten := policy.Must("10/1m")
	for want, a := range map[string]Activity{
		"name has 0 characters":           {Limit: ten},
		"name has 37 characters":          {Name: strings.Repeat("a", 37), Limit: ten},
		"a to z":                          {Name: "create post", Limit: ten},
		"it is unlimited and has":         {Name: "a", Unlimited: true, Tiers: Tiers{"t": ten}},
		"it is unlimited and has a":       {Name: "a", Unlimited: true, Limit: ten},
		"it has no limit":                 {Name: "a"},
		`tier "t" has no limit`:           {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Policy{}}},
		`did you mean "10/2m"?`:           {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Must("log 10/2m")}},
		`window of "10/1h" is 1h`:         {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Must("10/1h")}},
		`has 1 limit and "x: 10/1m, y`:    {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Must("x: 10/1m, y: 10/1h")}},
		`has no limit named "x"`:          {Name: "a", Limit: policy.Must("y: 1/1m, z: 1/1h"), Tiers: Tiers{"t": policy.Must("x: 1/1m, z: 1/1h")}},
		`"a: 1/1m, b: log 1/1h" counts`:   {Name: "a", Limit: policy.Must("a: 1/1m, b: 1/1h"), Tiers: Tiers{"t": policy.Must("a: 1/1m, b: log 1/1h")}},
		`tier "u": window of "log 10/1h"`: {Name: "a", Limit: policy.Must("log 9/1m"), Tiers: Tiers{"t": policy.Must("log 8/1m"), "u": policy.Must("log 10/1h")}},
	} {
		if err := (Guard{Name: "g", Message: "m", Activities: []Activity{a}}).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error that contains %s", a, err, want)
		}
	}
	if err := (Guard{Name: "g", Message: "m", Activities: []Activity{{Name: "a", Unlimited: true}, {Name: "a", Unlimited: true}}}).Validate(); err == nil {
		t.Error("an activity that is listed twice is valid")
	}
	if err := (Guard{Name: "g"}).Validate(); err == nil {
		t.Error("a guard without activities is valid")
	}
}

func TestTiersMayHaveTheirOwnNumbers(t *testing.T) {
	for limit, tier := range map[string]string{
		"10/1m":                      "20/1m",
		"bucket 10/1m":               "bucket 1/5s burst 3",
		"log 10/1m":                  "log 5/1m",
		"reservoir 1/1s ahead 1m":    "reservoir 2/1s ahead 5m",
		"minute: 10/1m, day: 200/1d": "day: 300/1d, minute: 5/1m",
	} {
		a := Activity{Name: "a", Limit: policy.Must(limit), Tiers: Tiers{"t": policy.Must(tier)}}
		if err := (Guard{Name: "g", Message: "m", Activities: []Activity{a}}).Validate(); err != nil {
			t.Errorf("%q with the tier %q: %v", limit, tier, err)
		}
	}
}
