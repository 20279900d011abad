// Package limits has the types of a page of limits: guards, their activities and
// the limits of each one. Projects write such a page with the package guards.
package limits

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// Guards are all guards of a project.
type Guards []Guard

// Named returns the guard with this name, and whether there is one.
func (all Guards) Named(name string) (Guard, bool) {
	return first(all, func(g Guard) bool { return g.Name == name })
}

// first returns the first element of a list for which is returns true.
func first[T any](list []T, is func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return found, false
	}
	return list[i], true
}

// Activity returns the activity with this name, and the guard that decides it.
func (all Guards) Activity(name string) (Guard, Activity, bool) {
	for _, g := range all {
		if a, ok := g.Activity(name); ok {
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
	for _, g := range all {
		for _, a := range g.Activities {
			names = append(names, a.Name)
		}
	}
	return names
}

// TierNames returns the names of all tiers, sorted. It never returns nil.
func (all Guards) TierNames() []string {
	names := []string{}
	for _, g := range all {
		for _, a := range g.Activities {
			for _, part := range a.Parts() {
				names = slices.AppendSeq(names, maps.Keys(part.Tiers))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A Guard is one Lambda function and the activities that it decides.
type Guard struct {
	Name       string // also the name of its folder in functions/
	Message    string // the text for a refused user
	Activities []Activity

	// BlockedMessage is the text for a user whom an operator has blocked; empty: You can't
	// do this at the moment.
	BlockedMessage string

	// These describe the function in template.yaml. No decision depends on them.
	Description  string // one sentence; empty: it names the first activity
	MemorySize   int    // MB, 128 to 10,240; 0: as in Globals
	DelayedQueue bool   // the function puts jobs that must wait on DelayedQueue
}

// An Activity is something that users do, with its limit.
type Activity struct {
	Name  string        // 1 to 36 characters, each a to z or _; the first and the last are letters
	Limit policy.Policy // the ordinary limit, for callers whose tier is not in Tiers
	Tiers Tiers         // the limits of certain plans
	Label string        // the limit in words for users, such as 12-hour pins; may be empty

	Group     string    // the activities of a group, of any guard, count in one item; empty: it counts alone
	Hold      bool      // a check's receipt, and the memory of its requestId, last for 15 minutes and not only for 20 s
	Subjects  []Subject // at most 3 that have to allow the action and count it, too, from the narrowest to the widest
	Unlimited bool      // never counted; then everything above but the name and the label must be empty
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

// Link returns the guards with the limits of each group beside one another, as they
// decide. The error is that of Validate.
func (all Guards) Link() (Guards, error) {
	if err := all.Validate(); err != nil {
		return nil, err
	}
	type item struct{ group, subject string }
	groups := map[item][]policy.Policy{}
	for _, a := range all.Grouped() {
		for _, s := range a.Parts() {
			groups[item{a.Group, s.Name}] = append(groups[item{a.Group, s.Name}], s.limits()...)
		}
	}
	linked := slices.Clone(all)
	for i := range linked {
		linked[i].Activities = slices.Clone(linked[i].Activities)
		for j, a := range linked[i].Activities {
			for _, s := range a.Parts() {
				a = a.With(s.beside(groups[item{a.Group, s.Name}]))
			}
			linked[i].Activities[j] = a
		}
	}
	return linked, nil
}

// Grouped returns the activities that belong to a group.
func (all Guards) Grouped() (grouped []Activity) {
	for _, g := range all {
		for _, a := range g.Activities {
			if a.Group != "" {
				grouped = append(grouped, a)
			}
		}
	}
	return grouped
}

// Validate returns an error for the first mistake in the list; nil if it has none.
func (all Guards) Validate() error {
	queued, _ := all.Queued()
	if len(all) == 0 {
		return errors.New("limits.go lists no guard in All, want at least one")
	}
	for i, g := range all {
		_, taken := all[:i].Named(g.Name)
		switch err := g.Validate(); {
		case err != nil:
			return err
		case taken:
			return fmt.Errorf("two guards have the name %s: give each guard a name of its own", g.Name)
		case g.DelayedQueue && g.Name != queued.Name:
			return fmt.Errorf("%s and %s have a DelayedQueue, but there is one queue: move the activities of %[2]s to %[1]s", queued.Name, g.Name)
		}
		for _, a := range g.Activities {
			if other, _, taken := all[:i].Activity(a.Name); taken {
				return fmt.Errorf("%s, activity %q: %s has an activity of this name; give each activity a name of its own", g.Name, a.Name, other.Name)
			}
			for _, s := range a.Subjects {
				if other, _, taken := all.Activity(s.Name); taken {
					return fmt.Errorf("%s, activity %q: its subject %q has the name of an activity of %s; give the subject a name of its own", g.Name, a.Name, s.Name, other.Name)
				}
			}
		}
	}
	return all.validateGroups()
}

// validateGroups returns an error for the first two activities that cannot count in
// the item of their group.
func (all Guards) validateGroups() error {
	grouped := all.Grouped()
	for i, a := range grouped {
		if g, _, taken := all.Activity(a.Group); taken {
			return fmt.Errorf("activity %q: its group has the name of the activity %q of %s; give the group a name of its own", a.Name, a.Group, g.Name)
		}
		for _, other := range grouped[:i] {
			if other.Group != a.Group {
				continue
			}
			for _, s := range a.Parts() {
				if err := policy.Meet(other.Part(s.Name).Limit, s.Limit); err != nil {
					return fmt.Errorf("activities %q and %q of the group %q: %w", other.Name, a.Name, a.Group, err)
				}
			}
		}
	}
	return nil
}

// Validate returns an error for the first mistake in the guard; nil if it has none.
func (g Guard) Validate() error {
	switch {
	case g.Name == "" || g.Message == "" || len(g.Activities) == 0:
		return fmt.Errorf("guard %q needs a name, a message and activities", g.Name)
	case len(g.Description) > 256:
		return fmt.Errorf("%s: Description has %d bytes, want at most 256, as Lambda allows", g.Name, len(g.Description))
	case g.MemorySize != 0 && (g.MemorySize < 128 || g.MemorySize > 10240):
		return fmt.Errorf("%s: MemorySize is %d, want 128 to 10240, or 0 for the one of Globals", g.Name, g.MemorySize)
	}
	if err := g.validateQueue(); err != nil {
		return err
	}
	for i, a := range g.Activities {
		err := a.validate()
		if _, taken := (Guard{Activities: g.Activities[:i]}).Activity(a.Name); err == nil && taken {
			err = errors.New("listed twice")
		}
		if err != nil {
			return fmt.Errorf("%s, activity %q: %w", g.Name, a.Name, err)
		}
	}
	return nil
}

// leastWindow is the shortest window in which a job from a queue is on time. SQS delays
// a message by whole seconds, so a job comes up to a second after its place begins.
const leastWindow = 2 * time.Second

// validateQueue returns an error if a guard with a queue gives places in windows that
// are too short for it. Tiers and live limits have the same windows.
func (g Guard) validateQueue() error {
	if !g.DelayedQueue {
		return nil
	}
	if !slices.ContainsFunc(g.Activities, func(a Activity) bool { return a.Limit.Queues() }) {
		return fmt.Errorf("%s: it has a DelayedQueue, and no activity with a reservoir whose jobs wait there", g.Name)
	}
	for _, a := range g.Activities {
		for _, p := range a.Limit.Each() {
			if p.Queues() && p.Rates()[0].Window < leastWindow {
				return fmt.Errorf("%s, activity %q: limit is %q, want a window of at least %v for the delayed queue, because SQS delivers a job up to a second late",
					g.Name, a.Name, p, leastWindow)
			}
		}
	}
	return nil
}

// validate returns an error for the first mistake in the activity; nil: none.
func (a Activity) validate() error {
	err := validName("name", a.Name)
	if err == nil && a.Group != "" {
		err = validName("group", a.Group)
	}
	switch {
	case err != nil:
		return err
	case a.Unlimited && (!a.Limit.IsZero() || len(a.Tiers) > 0 || len(a.Subjects) > 0 || a.Group != "" || a.Hold):
		return errors.New("it is unlimited and has a limit, a group, subjects or Hold")
	case a.Unlimited:
		return nil
	case a.Limit.IsZero():
		return errors.New("it has no limit and is not marked Unlimited")
	case len(a.Subjects) > mostSubjects:
		return fmt.Errorf("it has %d subjects, want at most %d", len(a.Subjects), mostSubjects)
	}
	if err := a.user().validate(a); err != nil {
		return err
	}
	for i, s := range a.Subjects {
		if err := a.validateSubject(i); err != nil {
			return err
		}
		if err := s.validate(a); err != nil {
			return fmt.Errorf("subject %q: %w", s.Name, err)
		}
	}
	return nil
}

// validName returns an error if name can't be that of an activity or a group.
func validName(what, name string) error {
	if len(name) < 1 || len(name) > 36 {
		return fmt.Errorf("%s has %d characters, want 1 to 36", what, len(name))
	}
	for _, c := range name {
		if c != '_' && (c < 'a' || c > 'z') {
			return fmt.Errorf("%s contains %q, want a to z and _", what, c)
		}
	}
	if strings.Trim(name, "_") != name { // such as __proto__, which is no ordinary key in JavaScript
		return fmt.Errorf("%s is %q, want it to begin and end with a letter", what, name)
	}
	return nil
}
