package limits_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// The limits that callers were promised. Changing one is changing this table.
func TestLimits(t *testing.T) {
	const short = "Rate limit exceeded: Too many requests in a short period"
	const long = "Rate limit exceeded: Too many requests. Please try again later."
	for _, want := range []struct {
		guard, message, activities string
		limit, premium             int64 // a minute; 0: unlimited
	}{
		{"posts-guard", short, "create_post update_post delete_post", 10, 20},
		{"posts-guard", short, "like view", 0, 0},
		{"comments-guard", long, "add_comment update_comment delete_comment", 60, 60},
		{"rooms-guard", short, "create_room update_room delete_room", 10, 20},
		{"room-message-guard", long, "create_room_message update_room_message delete_room_message", 60, 60},
	} {
		for name := range strings.FieldsSeq(want.activities) {
			a, ok := find(want.guard).Activity(name)
			if !ok || find(want.guard).Message != want.message {
				t.Errorf("%s of %s is %+v, %v", name, want.guard, a, find(want.guard).Message)
			}
			for tier, limit := range map[string]int64{"": want.limit, "premium": want.premium, "gold": want.limit} {
				if got := a.For(tier); limit == 0 && got != nil || limit != 0 && got != (ratelimit.FixedWindow{Limit: limit, Window: time.Minute}) {
					t.Errorf("%s of tier %q has %v, want %d a minute", name, tier, got, limit)
				}
			}
		}
	}
}

// The limits that are not by the minute.
func TestOtherLimits(t *testing.T) {
	const long = "Rate limit exceeded: Too many requests. Please try again later."
	every := func(burst int64) ratelimit.Policy {
		return ratelimit.TokenBucket{Limit: 1, Window: 5 * time.Second, Burst: burst, Keep: time.Hour}
	}
	for name, want := range map[string]struct {
		message  string
		activity Activity
	}{
		"pins-guard": {"Pin limit reached (100/12h). Skipped remaining pins.", Activity{
			Name: "pin", Limit: ratelimit.SlidingLog{Limit: 100, Window: 12 * time.Hour}, Label: "12-hour pins",
		}},
		"chat-guard":   {long, Activity{Name: "send_message", Limit: every(1), Tiers: Tiers{"burst": every(3)}}},
		"ingest-guard": {long, Activity{Name: "ingest", Limit: ratelimit.SlidingWindow{Limit: 50, Window: time.Hour}}},
		"jobs-guard": {long, Activity{
			Name: "update_member_role", Limit: ratelimit.Reservoir{Limit: 10, Window: 10 * time.Second, Ahead: 15 * time.Minute},
		}},
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

func TestValidate(t *testing.T) {
	activities := map[string]string{}
	for _, g := range All {
		if err := g.Validate(); err != nil {
			t.Error(err)
		}
		for _, a := range g.Activities {
			if other := activities[a.Name]; other != "" {
				t.Errorf("%s is an activity of %s and of %s", a.Name, other, g.Name)
			}
			activities[a.Name] = g.Name
		}
	}
	ten := ratelimit.FixedWindow{Limit: 10, Window: time.Minute}
	for says, a := range map[string]Activity{
		"1 to 36 characters":           {Limit: ten},
		"a to z":                       {Name: "create post", Limit: ten},
		"limit is 0":                   {Name: "a", Limit: ratelimit.FixedWindow{Window: time.Minute}},
		"milliseconds":                 {Name: "a", Limit: ratelimit.FixedWindow{Limit: 1, Window: time.Microsecond}},
		"unlimited and has":            {Name: "a", Unlimited: true, Tiers: Tiers{"t": ten}},
		"has no limit, and":            {Name: "a"},
		`tier "t" has no`:              {Name: "a", Limit: ten, Tiers: Tiers{"t": nil}},
		`tier "t": limit`:              {Name: "a", Limit: ten, Tiers: Tiers{"t": ratelimit.FixedWindow{Limit: -1, Window: time.Minute}}},
		"want a ratelimit.FixedWindow": {Name: "a", Limit: ten, Tiers: Tiers{"t": ratelimit.SlidingLog{Limit: 10, Window: time.Minute}}},
		"the same for all": {
			Name: "a", Limit: ratelimit.Reservoir{Limit: 1, Window: time.Second},
			Tiers: Tiers{"t": ratelimit.Reservoir{Limit: 2, Window: time.Second}},
		},
		"windows of 1h0m0s": {Name: "a", Limit: ten, Tiers: Tiers{"t": ratelimit.FixedWindow{Limit: 10, Window: time.Hour}}},
	} {
		if err := (Guard{Name: "g", Message: "m", Activities: []Activity{a}}).Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %s", a, err, says)
		}
	}
	if err := (Guard{Name: "g", Message: "m", Activities: []Activity{{Name: "a", Unlimited: true}, {Name: "a", Unlimited: true}}}).Validate(); err == nil {
		t.Error("an activity listed twice is valid")
	}
	if err := (Guard{Name: "g"}).Validate(); err == nil {
		t.Error("a guard without activities is valid")
	}
}
