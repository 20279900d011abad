package main

import (
	"fmt"
	"strings"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
)

// owner returns the guard that decides an activity.
func owner(activity string) (limits.Guard, error) {
	for _, g := range limits.All {
		if _, ok := g.Activity(activity); ok {
			return g, nil
		}
	}
	all := activities()
	if meant, ok := nearest(activity, all); ok {
		return limits.Guard{}, hint{
			error:  &input.ValidationError{Field: "activity", Problem: fmt.Sprintf("is %s, did you mean %q?", input.Show(activity), meant)},
			advice: "see guards limits",
		}
	}
	return limits.Guard{}, input.Invalid("activity", input.Show(activity), "one of "+strings.Join(all, ", "))
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
