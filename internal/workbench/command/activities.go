package command

import (
	"fmt"
	"strings"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
)

// activityNamed returns the activity with this name, and the guard that decides
// it. It returns false if the code does not have the activity.
func activityNamed(name string) (g limits.Guard, a limits.Activity, ok bool) {
	for _, g := range limits.All {
		if a, ok := g.Activity(name); ok {
			return g, a, true
		}
	}
	return g, a, false
}

// find returns what activityNamed returns. Without such an activity, its error
// suggests a name.
func find(name string) (limits.Guard, limits.Activity, error) {
	g, a, ok := activityNamed(name)
	if ok {
		return g, a, nil
	}
	all := activities()
	if meant, ok := nearest(name, all); ok {
		return g, a, hint{
			error:  &input.ValidationError{Field: "activity", Problem: fmt.Sprintf("is %s, did you mean %q?", input.Show(name), meant)},
			advice: "see guards limits",
		}
	}
	return g, a, input.Invalid("activity", input.Show(name), "one of "+strings.Join(all, ", "))
}

// inCode returns the limit of an activity for callers of a tier, in its text
// form.
func inCode(a limits.Activity, tier string) string {
	if a.Unlimited {
		return "unlimited"
	}
	return a.For(tier).String()
}

// activities returns the names of all guards' activities.
func activities() (all []string) {
	for _, g := range limits.All {
		for _, a := range g.Activities {
			all = append(all, a.Name)
		}
	}
	return all
}
