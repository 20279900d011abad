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

// parseTiers reads the limits of tiers.
func parseTiers(texts map[string]string) (tiers limits.Tiers, err error) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if tiers == nil {
			tiers = limits.Tiers{}
		}
		if tiers[name], err = policy.Parse(texts[name]); err != nil {
			return nil, fmt.Errorf("tier %s: %w", name, err)
		}
	}
	return tiers, nil
}
