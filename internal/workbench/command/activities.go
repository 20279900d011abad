package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// find returns the activity with this name, and the guard that decides it.
// Without such an activity, its error suggests a name.
func (c session) find(name string) (limits.Guard, limits.Activity, error) {
	g, a, ok := c.guards.Activity(name)
	if ok {
		return g, a, nil
	}
	all := c.guards.Activities()
	if meant, ok := nearest(name, all); ok {
		problem := fmt.Sprintf("is %s, did you mean %q?", input.Show(name), meant)
		return g, a, hint{&input.ValidationError{Field: "activity", Problem: problem}, "see guards limits"}
	}
	return g, a, input.Invalid("activity", input.Show(name), "one of "+strings.Join(all, ", "))
}

// inCode returns an activity's limit for callers of a tier, in its text form.
func inCode(a limits.Activity, tier string) string {
	if a.Unlimited {
		return "unlimited"
	}
	return a.For(tier).String()
}

// optionFlags are the options of a new activity.
type optionFlags struct {
	Tier  map[string]string `mapsep:"none" placeholder:"NAME=LIMIT" help:"The limit of a plan (a tier), such as premium=20/1m. Can be repeated."`
	Group string            `placeholder:"NAME" help:"Count together with the other activities of this group, also of other guards. Each limit has a name, such as writes: 100/1h."`
	Hold  bool              `help:"Keep the receipt of a check for 15 minutes, so that an app can reserve and settle. At most 500 actions a minute."`
}

// activity reads the limit and the options of a new activity.
func (f optionFlags) activity(name, limit string) (a limits.Activity, err error) {
	a.Name, a.Group, a.Hold = name, f.Group, f.Hold
	if a.Limit, err = policy.Parse(limit); err != nil {
		return a, err
	}
	for _, tier := range slices.Sorted(maps.Keys(f.Tier)) {
		if a.Tiers == nil {
			a.Tiers = limits.Tiers{}
		}
		if a.Tiers[tier], err = policy.Parse(f.Tier[tier]); err != nil {
			return a, fmt.Errorf("tier %s: %w", tier, err)
		}
	}
	return a, nil
}
