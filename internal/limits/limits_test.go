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

// promised lists the limits that callers were promised. To change a limit,
// change this table too. guards new adds lines at the end.
var promised = []struct {
	guard, message, activities string
	limit                      string // empty: unlimited
	tiers                      map[string]string
	label                      string
}{
	{"posts-guard", short, "create_post update_post delete_post", "10/1m", map[string]string{"premium": "20/1m"}, ""},
	{"posts-guard", short, "like view", "", nil, ""},
	{"comments-guard", long, "add_comment update_comment delete_comment", "60/1m", nil, ""},
	{"rooms-guard", short, "create_room update_room delete_room", "10/1m", map[string]string{"premium": "20/1m"}, ""},
	{"room-message-guard", long, "create_room_message update_room_message delete_room_message", "60/1m", nil, ""},
	{"pins-guard", "Pin limit reached (100/12h). Skipped remaining pins.", "pin", "log 100/12h", nil, "12-hour pins"},
	{"chat-guard", long, "send_message", "bucket 1/5s keep 1h", map[string]string{"burst": "bucket 1/5s burst 3 keep 1h"}, ""},
	{"ingest-guard", long, "ingest", "sliding 50/1h", nil, ""},
	{"jobs-guard", long, "update_member_role", "reservoir 10/10s ahead 15m", nil, ""},
}

func TestLimitsAreAsPromised(t *testing.T) {
	want := map[string]Activity{}
	for _, p := range promised {
		for name := range strings.FieldsSeq(p.activities) {
			a := Activity{Name: name, Label: p.label, Unlimited: p.limit == ""}
			if !a.Unlimited {
				a.Limit = policy.Must(p.limit)
			}
			for tier, limit := range p.tiers {
				if a.Tiers == nil {
					a.Tiers = Tiers{}
				}
				a.Tiers[tier] = policy.Must(limit)
			}
			want[p.guard+" "+name+": "+p.message] = a
		}
	}
	got := map[string]Activity{}
	for _, g := range All {
		for _, a := range g.Activities {
			got[g.Name+" "+a.Name+": "+g.Message] = a
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits.go differs from what callers were promised (-promised +limits.go):\n%s", diff)
	}
}

func TestATierThatAnActivityDoesNotNameGetsTheOrdinaryLimit(t *testing.T) {
	for _, g := range All {
		for _, a := range g.Activities {
			if got := a.For("gold"); !got.Equal(a.Limit) || got.IsZero() != a.Unlimited {
				t.Errorf("%s of tier gold has the limit %q, want %q", a.Name, got, a.Limit)
			}
			for tier, limit := range a.Tiers {
				if got := a.For(tier); !got.Equal(limit) {
					t.Errorf("%s of tier %s has the limit %q, want %q", a.Name, tier, got, limit)
				}
			}
		}
	}
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
		"name has 0 characters":            {Limit: ten},
		"name has 37 characters":           {Name: strings.Repeat("a", 37), Limit: ten},
		"a to z":                           {Name: "create post", Limit: ten},
		`name is "__proto__", want`:        {Name: "__proto__", Limit: ten},
		`name is "_a", want it to begin`:   {Name: "_a", Limit: ten},
		`name is "a_", want it to begin a`: {Name: "a_", Limit: ten},
		`name is "_", want`:                {Name: "_", Limit: ten},
		"it is unlimited and has":          {Name: "a", Unlimited: true, Tiers: Tiers{"t": ten}},
		"it is unlimited and has a":        {Name: "a", Unlimited: true, Limit: ten},
		"it has no limit":                  {Name: "a"},
		`tier is "", want 1 to 36`:         {Name: "a", Limit: ten, Tiers: Tiers{"": ten}},
		`tier is "a|b", want 1 to 36`:      {Name: "a", Limit: ten, Tiers: Tiers{"a|b": ten}},
		`tier "t" has no limit`:            {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Policy{}}},
		`did you mean "10/2m"?`:            {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Must("log 10/2m")}},
		`window of "10/1h" is 1h`:          {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Must("10/1h")}},
		`has 1 limit and "x: 10/1m, y`:     {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Must("x: 10/1m, y: 10/1h")}},
		`has no limit named "x"`:           {Name: "a", Limit: policy.Must("y: 1/1m, z: 1/1h"), Tiers: Tiers{"t": policy.Must("x: 1/1m, z: 1/1h")}},
		`"a: 1/1m, b: log 1/1h" counts`:    {Name: "a", Limit: policy.Must("a: 1/1m, b: 1/1h"), Tiers: Tiers{"t": policy.Must("a: 1/1m, b: log 1/1h")}},
		`tier "u": window of "log 10/1h"`:  {Name: "a", Limit: policy.Must("log 9/1m"), Tiers: Tiers{"t": policy.Must("log 8/1m"), "u": policy.Must("log 10/1h")}},
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
