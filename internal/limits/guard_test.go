package limits_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

func TestValidateRefuses(t *testing.T) {
	ten := policy.Must("10/1m")
	for want, a := range map[string]Activity{
		"name has 0 characters":            {Limit: ten},
		"name has 37 characters":           {Name: strings.Repeat("a", 37), Limit: ten},
		"a to z":                           {Name: "create post", Limit: ten},
		`name is "__proto__", want`:        {Name: "__proto__", Limit: ten},
		`name is "_a", want it to begin`:   {Name: "_a", Limit: ten},
		`name is "a_", want it to begin a`: {Name: "a_", Limit: ten},
		"it is unlimited and has":          {Name: "a", Unlimited: true, Tiers: Tiers{"t": ten}},
		"it has no limit":                  {Name: "a"},
		`tier is "", want 1 to 36`:         {Name: "a", Limit: ten, Tiers: Tiers{"": ten}},
		`tier is "a|b", want 1 to 36`:      {Name: "a", Limit: ten, Tiers: Tiers{"a|b": ten}},
		`tier "t" has no limit`:            {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Policy{}}},
		`did you mean "10/2m"?`:            {Name: "a", Limit: ten, Tiers: Tiers{"t": policy.Must("log 10/2m")}},
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

// SQS delivers a job up to a second late.
func TestAQueueNeedsWindowsOfTwoSeconds(t *testing.T) {
	for limit, refused := range map[string]string{
		"reservoir 10/2s ahead 15m":                   "",
		"reservoir 10/1999ms ahead 15m":               "reservoir 10/1999ms ahead 15m",
		"reservoir 10/1s ahead 15m":                   "reservoir 10/1s ahead 15m",
		"jobs: reservoir 10/1s ahead 1m, day: 200/1d": "reservoir 10/1s ahead 1m",
		"10/1s": "", // gives no places
	} {
		g := Guard{Name: "g", Message: "m", Activities: []Activity{
			{Name: "free", Unlimited: true}, {Name: "job", Limit: policy.Must(limit)}, {Name: "other", Limit: policy.Must("reservoir 10/1m ahead 15m")},
		}}
		if err := g.Validate(); err != nil {
			t.Errorf("%s without a queue: %v", limit, err)
		}
		g.DelayedQueue = true
		want := "<nil>"
		if refused != "" {
			want = `g, activity "job": limit is "` + refused + `", want a window of at least 2s for the delayed queue, because SQS delivers a job up to a second late`
		}
		if got := fmt.Sprint(g.Validate()); got != want {
			t.Errorf("%s: error %s, want %s", limit, got, want)
		}
	}
}

func TestAListIsValidAsAWhole(t *testing.T) {
	guard := func(name string, queue bool, activities ...string) Guard {
		g := Guard{Name: name, Message: "m", DelayedQueue: queue}
		for _, a := range activities {
			g.Activities = append(g.Activities, Activity{Name: a, Limit: policy.Must("reservoir 5/1m ahead 5m")})
		}
		return g
	}
	for want, all := range map[string]Guards{
		"limits.go lists no guard in All, want at least one": {},
		"<nil>": {guard("a-guard", true, "a"), guard("b-guard", false, "b", "c")},
		"two guards have the name a-guard: give each guard a name of its own":                                        {guard("a-guard", false, "a"), guard("a-guard", false, "b")},
		`b-guard, activity "a": a-guard has an activity of this name; give each activity a name of its own`:          {guard("a-guard", false, "a"), guard("b-guard", false, "a")},
		"a-guard and b-guard have a DelayedQueue, but there is one queue: move the activities of b-guard to a-guard": {guard("a-guard", true, "a"), guard("b-guard", true, "b")},
		"c-guard: it has a DelayedQueue, and no activity with a reservoir whose jobs wait there":                     {{Name: "c-guard", Message: "m", DelayedQueue: true, Activities: []Activity{{Name: "c", Unlimited: true}}}},
		"c-guard: Description has 257 bytes, want at most 256, as Lambda allows":                                     {{Name: "c-guard", Message: "m", Description: strings.Repeat("d", 257), Activities: []Activity{{Name: "c", Unlimited: true}}}},
		`guard "b-guard" needs a name, a message and activities`:                                                     {guard("a-guard", true, "a"), guard("b-guard", false)},
	} {
		if got := fmt.Sprint(all.Validate()); got != want {
			t.Errorf("%v: %s, want %s", all, got, want)
		}
	}
}
