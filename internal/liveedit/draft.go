package liveedit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
)

// A Draft is what an edit makes of the settings. The zero Draft changes no limit.
// The methods that return another Draft leave this one as it is.
type Draft struct {
	live.Settings

	by live.Stamp // for what Set and Grant change; zero: it gets no stamp
}

// Set changes the limit and the mode of what has this name in Activities. If tier is
// not empty, it changes the limit of that tier only. An empty limit or mode stays.
func (d Draft) Set(name, tier, limit, mode string) Draft {
	o := cloned(d.Activities[name])
	if p, err := policy.Parse(limit); err == nil {
		limit = p.String() // Edit refuses a text that is not a limit
	}
	switch {
	case limit == "":
	case tier == "":
		o.Limit = limit
	default:
		o.Tiers[tier] = limit
	}
	if o.Mode = cmp.Or(mode, o.Mode); o.Mode == AsDeployed {
		o.Mode, o.ModeSet = "", live.Stamp{}
	}
	by, known := d.by, !d.by.Since.IsZero()
	if known && limit != "" && limit != o.Set[tier].Of { // the same limit again is no change
		by.Of = limit
		o.Set[tier] = by
	}
	if known && mode != "" && mode != AsDeployed && mode != o.ModeSet.Of {
		by.Of = mode
		o.ModeSet = by
	}
	return d.endless(name, tier, limit != "", mode != "").with(name, o)
}

// AsDeployed stands for the mode that a function is deployed with. Setting it undoes a
// live mode.
const AsDeployed = "deployed"

// endless drops the ends of what an edit sets or undoes: the limit of a tier, the mode, or
// both.
func (d Draft) endless(name, tier string, limit, mode bool) Draft {
	end, ok := d.Ends[name]
	if !ok {
		return d
	}
	end.Limits = clone(end.Limits)
	if limit {
		delete(end.Limits, tier)
	}
	if mode {
		end.Mode = live.Until{}
	}
	d.Ends = clone(d.Ends)
	if d.Ends[name] = end; len(end.Limits) == 0 && end.Mode == (live.Until{}) {
		delete(d.Ends, name)
	}
	return d
}

// Until lets what Set has set end by itself.
func (d Draft) Until(name, tier, limit, mode string, until time.Time) Draft {
	o, end := d.Activities[name], d.Ends[name]
	end.Limits = clone(end.Limits)
	if limit != "" {
		end.Limits[tier] = live.Until{Of: o.Text(tier), Until: until}
	}
	if mode != "" {
		end.Mode = live.Until{Of: o.Mode, Until: until}
	}
	d.Ends = clone(d.Ends)
	d.Ends[name] = end
	return d
}

// Unset undoes what Set changed. If tier is not empty, it undoes only the change of
// that tier.
func (d Draft) Unset(name, tier string) (Draft, error) {
	o, ok := d.Activities[name]
	switch _, has := o.Tiers[tier]; {
	case ok && tier == "":
		d.Ends = clone(d.Ends)
		delete(d.Ends, name)
		return d.with(name, live.Override{}), nil
	case has:
		o = cloned(o)
		delete(o.Tiers, tier)
		delete(o.Set, tier)
		return d.endless(name, tier, true, false).with(name, o), nil
	case tier != "":
		name += " for tier " + tier
	}
	return d, fmt.Errorf("%s has no live limit to undo", name)
}

// with returns the draft with another override under this name.
func (d Draft) with(name string, o live.Override) Draft {
	d.Activities, d.Damaged.Activities, d.Damaged.Ends = clone(d.Activities), clone(d.Damaged.Activities), clone(d.Damaged.Ends)
	delete(d.Damaged.Activities, name)
	delete(d.Damaged.Ends, name)
	d.Activities[name] = o
	if o.Empty() {
		delete(d.Activities, name)
	}
	return d
}

// clone returns a copy of a map, which may be nil.
func clone[V any](m map[string]V) map[string]V {
	c := make(map[string]V, len(m)+1)
	maps.Copy(c, m)
	return c
}

// cloned returns a copy of o with maps of its own.
func cloned(o live.Override) live.Override {
	o.Tiers, o.Set = clone(o.Tiers), clone(o.Set)
	return o
}

// Grant adds g and removes grants that have ended. G replaces a grant of the same role,
// or of any tier, to the same user.
func (d Draft) Grant(g live.Grant, now time.Time) Draft {
	d.Grants = slices.DeleteFunc(slices.Clone(d.Grants), func(old live.Grant) bool {
		return !old.InForce(now) || old.UserID == g.UserID && old.Role == g.Role && (old.Tier == "") == (g.Tier == "")
	})
	g.Set = d.by
	d.Grants = append(d.Grants, g)
	return d
}

// Revoke drops all grants of a user, and returns how many there were.
func (d Draft) Revoke(userID string) (Draft, int) {
	before := len(d.Grants)
	d.Grants = slices.DeleteFunc(slices.Clone(d.Grants), func(g live.Grant) bool { return g.UserID == userID })
	return d, before - len(d.Grants)
}

// GrantsAt returns the grants that are in force at now. It never returns nil.
func GrantsAt(s live.Settings, now time.Time) []live.Grant {
	return slices.DeleteFunc(append([]live.Grant{}, s.Grants...), func(g live.Grant) bool { return !g.InForce(now) })
}

// ValidateGrant returns an error that names what is wrong with g.
func ValidateGrant(g live.Grant) error {
	if err := live.CheckKey(g.UserID); err != nil {
		return err
	}
	subject := limits.SubjectName(g.UserID) != ""
	switch {
	case subject && g.Role != "":
		return errors.New("a grant to a subject needs a tier, because roles are about users")
	case (g.Role == "") == (g.Tier == ""):
		return errors.New("a grant needs either a role or a tier")
	case g.Until.IsZero():
		return errors.New("a grant needs a time when it ends")
	case g.Reason == "" || len(g.Reason) > 200:
		return errors.New("a grant needs a reason of 1 to 200 characters")
	}
	return nil
}

// validate checks only what differs from before, so settings with a mistake somewhere
// else can still be edited.
func validate(before, after live.Settings, guards limits.Guards) error {
	shared := ofGroups(after, guards)
	for _, name := range slices.Sorted(maps.Keys(after.Activities)) {
		was, ok := before.Activities[name]
		changed := without(after.Activities[name], was)
		if ok && changed.Empty() {
			continue
		}
		one := map[string]live.Override{name: changed}
		if live.ParseTarget(name).Group == "" { // its lockouts have to match its group's
			maps.Copy(one, shared)
		}
		if problems := problems(one, guards); len(problems) > 0 {
			return errors.Join(problems...)
		}
	}
	if err := splits(before, after, guards); err != nil {
		return err
	}
	for _, g := range after.Grants {
		if slices.Contains(before.Grants, g) {
			continue
		}
		if err := ValidateGrant(g); err != nil {
			return err
		}
	}
	if len(after.Grants) > max(maxGrants, len(before.Grants)) {
		return fmt.Errorf("there would be %d grants, want at most %d: revoke some first", len(after.Grants), maxGrants)
	}
	return nil
}

// problems returns what the code can't follow of some overrides.
func problems(some map[string]live.Override, guards limits.Guards) []error {
	_, problems := live.Settings{Activities: some}.Limits(guards, nil)
	return problems
}

// ofGroups returns the overrides of groups' limits that the code can follow.
func ofGroups(s live.Settings, guards limits.Guards) map[string]live.Override {
	all := map[string]live.Override{}
	for name, o := range s.Activities {
		one := map[string]live.Override{name: o}
		if live.ParseTarget(name).Group != "" && len(problems(one, guards)) == 0 {
			all[name] = o
		}
	}
	return all
}

// splits returns an error if an activity gets another lockout than its group: the group's
// changes, and the activity has a live limit of its own.
func splits(before, after live.Settings, guards limits.Guards) error {
	old := map[string]bool{}
	for _, problem := range problems(before.Activities, guards) {
		old[problem.Error()] = true
	}
	return errors.Join(slices.DeleteFunc(problems(after.Activities, guards), func(problem error) bool {
		return !errors.Is(problem, live.ErrGroupLockout) || old[problem.Error()]
	})...)
}

// without returns the parts of o that differ from the parts of was.
func without(o, was live.Override) live.Override {
	if o.Limit == was.Limit {
		o.Limit = ""
	}
	if o.Mode == was.Mode {
		o.Mode = ""
	}
	o.Tiers = maps.Clone(o.Tiers)
	maps.DeleteFunc(o.Tiers, func(tier, limit string) bool {
		before, ok := was.Tiers[tier]
		return ok && before == limit
	})
	return o
}
