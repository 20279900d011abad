// Package limits has the guards of a page as they decide: with policies, and with the
// limits of each group beside one another.
package limits

import (
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/policy"
)

// Guards are all guards of a project. [Link] makes them of a page.
type Guards []Guard

// Named returns the guard with this name, and whether there is one.
func (all Guards) Named(name string) (Guard, bool) {
	return first(all, func(g Guard) bool { return g.Name == name })
}

// first returns the first element of a list that makes is return true.
func first[T any](list []T, is func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return found, false
	}
	return list[i], true
}

// All yields each activity, with the guard that decides it.
func (all Guards) All(yield func(Guard, Activity) bool) {
	for _, g := range all {
		for _, a := range g.Activities {
			if !yield(g, a) {
				return
			}
		}
	}
}

// Activity returns the activity with this name, and the guard that decides it.
func (all Guards) Activity(name string) (Guard, Activity, bool) {
	for g, a := range all.All {
		if a.Name == name {
			return g, a, true
		}
	}
	return Guard{}, Activity{}, false
}

// Queued returns the guard that has a DelayedQueue, and whether there is one.
func (all Guards) Queued() (Guard, bool) {
	return first(all, func(g Guard) bool { return g.DelayedQueue })
}

// Activities returns the names of all activities.
func (all Guards) Activities() (names []string) {
	for _, a := range all.All {
		names = append(names, a.Name)
	}
	return names
}

// TierNames returns the names of all tiers, sorted. It never returns nil.
func (all Guards) TierNames() []string {
	names := []string{}
	for _, a := range all.All {
		for _, part := range a.Parts() {
			names = slices.AppendSeq(names, maps.Keys(part.Tiers))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A Guard is a [guards.Guard] whose limits are read.
type Guard struct {
	Name, Message, BlockedMessage string
	Activities                    []Activity
	Description                   string
	MemorySize                    int
	DelayedQueue                  bool
}

// An Activity is a [guards.Activity] whose limits are read.
type Activity struct {
	Name      string
	Limit     policy.Policy // zero: unlimited
	Tiers     Tiers
	Label     string
	Group     string
	Hold      bool
	Subjects  []Subject
	Unlimited bool
}

// Tiers holds limits by the caller's plan. An activity's tiers share one count.
type Tiers map[string]policy.Policy

// Activity returns the activity with this name, and whether there is one.
func (g Guard) Activity(name string) (Activity, bool) {
	return first(g.Activities, func(a Activity) bool { return a.Name == name })
}

// For returns the limit for callers of a tier. A tier that the activity does
// not name gets the ordinary limit. The zero Policy means unlimited.
func (a Activity) For(tier string) policy.Policy { return a.user().For(tier) }

// Window returns the window of the ordinary limit. It is 0 if the activity is unlimited, or if
// its limits have names or it has subjects, because then there are several windows. It is 0,
// too, if the windows differ in length: months, and days and weeks of a zone that can change its
// clocks.
func (a Activity) Window() time.Duration {
	if a.Unlimited || a.Limit.Named() || len(a.Subjects) > 0 {
		return 0
	}
	if r := a.Limit.Rates()[0]; r.Unit == "month" || r.Unit != "" && r.Zone != "" && r.Zone != "UTC" {
		return 0
	}
	return a.Limit.Quota().Window
}

// Link returns the guards of a page with their limits. The limits of each group lie
// beside one another. The error is the same as [guards.Validate]'s.
func Link(page []guards.Guard) (Guards, error) {
	if err := guards.Validate(page); err != nil {
		return nil, err
	}
	all := make(Guards, len(page))
	for i, g := range page {
		all[i] = Guard{
			Name: g.Name, Message: g.Message, BlockedMessage: g.BlockedMessage,
			Description: g.Description, MemorySize: g.MemorySize, DelayedQueue: g.DelayedQueue,
		}
		for _, a := range g.Activities {
			all[i].Activities = append(all[i].Activities, read(a))
		}
	}
	type item struct{ group, subject string }
	groups := map[item][]policy.Policy{}
	for _, a := range all.Grouped() {
		for _, s := range a.Parts() {
			of := item{a.Group, s.Name}
			groups[of] = slices.AppendSeq(append(groups[of], s.Limit), maps.Values(s.Tiers))
		}
	}
	for i := range all {
		for j, a := range all[i].Activities {
			for _, s := range a.Parts() {
				a = a.With(s.beside(groups[item{a.Group, s.Name}]))
			}
			all[i].Activities[j] = a
		}
	}
	return all, nil
}

// read returns a valid activity of a page with its limits.
func read(a guards.Activity) Activity {
	user := part(guards.Subject{Limit: a.Limit, Tiers: a.Tiers})
	linked := Activity{Name: a.Name, Limit: user.Limit, Tiers: user.Tiers, Label: a.Label, Group: a.Group, Hold: a.Hold, Unlimited: a.Unlimited}
	for _, s := range a.Subjects {
		linked.Subjects = append(linked.Subjects, part(s))
	}
	return linked
}

// part returns a valid subject of a page with its limits.
func part(s guards.Subject) Subject {
	linked := Subject{Name: s.Name, Optional: s.Optional, Tiers: Tiers{}}
	if s.Limit != "" {
		linked.Limit = policy.Must(string(s.Limit))
	}
	for tier, limit := range s.Tiers {
		linked.Tiers[tier] = policy.Must(string(limit))
	}
	return linked
}

// Grouped returns the activities that belong to a group.
func (all Guards) Grouped() (grouped []Activity) {
	for _, a := range all.All {
		if a.Group != "" {
			grouped = append(grouped, a)
		}
	}
	return grouped
}
