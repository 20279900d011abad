package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// find returns the activity with this name, and the guard that decides it.
// Without such an activity, its error suggests a name.
func (c session) find(name string) (limits.Guard, limits.Activity, error) {
	g, a, ok := c.guards.Activity(name)
	if ok {
		return g, a, nil
	}
	if in := countedIn(c.guards, name); len(in) > 0 {
		return g, a, input.Invalid("activity", input.Show(name), "an activity of this group: "+strings.Join(namesOf(in), ", "))
	}
	all := c.guards.Activities()
	if meant, ok := nearest(name, all); ok {
		problem := fmt.Sprintf("is %s, did you mean %q?", input.Show(name), meant)
		return g, a, hint{&input.ValidationError{Field: "activity", Problem: problem}, "see guards limits"}
	}
	return g, a, input.Invalid("activity", input.Show(name), "one of "+strings.Join(all, ", "))
}

// findInGroup returns the activities of a group that have the limit with this name, for
// users or for a subject. Without such a group, subject or limit, its error suggests a name.
func (c session) findInGroup(group, subject, name string) (all []limits.Activity, err error) {
	var names, subjects []string
	kind := "limit of the group " + group
	if subject != "" {
		kind += " for " + subject
	}
	for _, a := range c.guards.Grouped() {
		if a.Group != group {
			continue
		}
		for _, part := range a.Parts() {
			subjects = append(subjects, part.Name)
			if part.Name != subject {
				continue
			}
			for _, r := range part.Limit.Rates() {
				names = append(names, r.Name)
			}
			if part.Limit.Part(name) != "" {
				all = append(all, a)
			}
		}
	}
	err = cmp.Or(unknown("--group", group, groupNames(c.guards, true), "group"), unknown("--subject", subject, subjects, "subject of the group "+group), unknown("limit", name, names, kind))
	if err != nil {
		err = hint{err, "see guards limits"}
	}
	return all, err
}

// groupNames returns the names of the groups, or the names of their limits.
func groupNames(guards limits.Guards, groups bool) (names []string) {
	for _, a := range guards.Grouped() {
		if groups {
			names = append(names, a.Group)
			continue
		}
		for _, part := range a.Parts() {
			for _, r := range part.Limit.Rates() {
				names = append(names, r.Name)
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// itemOf returns the name that items count an activity under: the group's name, or
// else its own.
func itemOf(a limits.Activity) string { return cmp.Or(a.Group, a.Name) }

// keyOf returns the key of the item that counts the actions of the user or the subject
// with this key at now, in Unix milliseconds. The activity must have such a subject.
func keyOf(whose string, a limits.Activity, now int64) ratelimit.Key {
	window, _ := a.Part(subjectOf(whose)).Limit.Item(now)
	return ratelimit.Key{UserID: whose, Activity: itemOf(a), Window: window}
}

// countedIn returns the activities that items with this name count: all of a group, or
// one. It returns none if the code has no such activity or group.
func countedIn(guards limits.Guards, item string) (all []limits.Activity) {
	for _, a := range guards.All {
		if itemOf(a) == item {
			all = append(all, a)
		}
	}
	return all
}

// namesOf returns the names of activities.
func namesOf(all []limits.Activity) (names []string) {
	for _, a := range all {
		names = append(names, a.Name)
	}
	return names
}

// groupOf names a group and its activities for people.
func groupOf(all []limits.Activity) string {
	return fmt.Sprintf("the group %s (%s)", all[0].Group, strings.Join(namesOf(all), ", "))
}

// queues reports whether one of the activities gives places in later windows. Jobs
// wait for these, so the item can't be cleared.
func queues(all []limits.Activity) bool {
	return slices.ContainsFunc(all, func(a limits.Activity) bool { return a.Limit.Queues() })
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
	Also  []string          `name:"subject" sep:"none" placeholder:"NAME=LIMIT" help:"Count for another than the user, too, such as room=600/1m. A question mark behind the name makes it optional in events, such as \"tenant?=1000/day\". Can be repeated, from the narrowest to the widest."`
	Hold  bool              `help:"Keep the receipt of a check for 15 minutes, so that an app can reserve and settle. At most 500 actions a minute."`
}

// activity reads the limit and the options of a new activity.
func (f optionFlags) activity(name, limit string) (a guards.Activity, err error) {
	a.Name, a.Group, a.Hold = name, f.Group, f.Hold
	if a.Limit, err = canonical(limit); err != nil {
		return a, err
	}
	for _, tier := range slices.Sorted(maps.Keys(f.Tier)) {
		if a.Tiers == nil {
			a.Tiers = guards.Tiers{}
		}
		if a.Tiers[tier], err = canonical(f.Tier[tier]); err != nil {
			return a, fmt.Errorf("tier %s: %w", tier, err)
		}
	}
	for _, text := range f.Also {
		s, err := newSubject(text)
		if err != nil {
			return a, err
		}
		a.Subjects = append(a.Subjects, s)
	}
	return a, nil
}

// canonical reads a limit of a new activity.
func canonical(text string) (guards.Limit, error) {
	p, err := policy.Parse(text)
	return guards.Limit(p.String()), err
}

// newSubject reads a subject of a new activity, such as room=600/1m or tenant?=1000/day.
func newSubject(text string) (s guards.Subject, err error) {
	name, limit, ok := strings.Cut(text, "=")
	if !ok {
		return s, input.Invalid("--subject", input.Show(text), "a name and a limit, such as room=600/1m")
	}
	s.Name, s.Optional = strings.CutSuffix(name, "?")
	if s.Limit, err = canonical(limit); err != nil {
		return s, fmt.Errorf("subject %s: %w", s.Name, err)
	}
	return s, nil
}
