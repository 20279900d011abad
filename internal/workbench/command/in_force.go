package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
)

// asDeployed is the mode of an activity for which operators set none.
const asDeployed = "as deployed"

// A change of a limit or a mode. Old and New are what is in force before and
// after the change.
type change struct {
	Activity string `json:"activity"`
	Tier     string `json:"tier,omitzero"`
	Of       string `json:"of"` // limit or mode
	Old      string `json:"old"`
	New      string `json:"new"`
}

// String returns the change for people.
func (c change) String() string {
	return fmt.Sprintf("%s: %s %s -> %s", nameOf(c.Activity, c.Tier), c.Of, c.Old, c.New)
}

// nameOf names an activity, or one of its tiers, for people.
func nameOf(activity, tier string) string {
	if tier == "" {
		return activity
	}
	return activity + ", tier " + tier
}

// limitOf names a limit of an activity for people. The name of a limit is empty
// if the activity has only one.
func limitOf(activity, name string) string {
	if name == "" {
		return activity
	}
	return activity + ", " + name
}

// texts returns the changes for people.
func texts(changes []change) (lines []string) {
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	return lines
}

// changesOf returns what differs between two settings in one activity.
func changesOf(guards limits.Guards, before, after live.Settings, name string) (all []change) {
	was, is := before.Activities[name], after.Activities[name]
	_, a, _ := guards.Activity(name) // without an activity in the code, a has no limit
	tiers := slices.Concat([]string{""}, slices.Collect(maps.Keys(was.Tiers)), slices.Collect(maps.Keys(is.Tiers)))
	for _, tier := range slices.Compact(slices.Sorted(slices.Values(tiers))) {
		if old, now := inForce(was, a, tier), inForce(is, a, tier); old != now {
			all = append(all, change{name, tier, "limit", old, now})
		}
	}
	if was.Mode != is.Mode {
		all = append(all, change{name, "", "mode", cmp.Or(was.Mode, asDeployed), cmp.Or(is.Mode, asDeployed)})
	}
	return all
}

// inForce returns the limit that an override puts in force for callers of a
// tier, in its text form.
func inForce(o live.Override, a limits.Activity, tier string) string {
	code := a.For(tier)
	text, ok := o.Tiers[tier]
	if _, named := a.Tiers[tier]; !ok && !named {
		text = o.Limit
	}
	switch p, err := policy.Parse(text); {
	case err == nil:
		return p.OptionsOf(code).String()
	case code.IsZero():
		return "none"
	}
	return code.String()
}

// A ruling is what operators changed about an activity for one user. Empty
// fields are not changed.
type ruling struct {
	Limit string `json:"limit,omitzero"` // the live limit
	Mode  string `json:"mode,omitzero"`  // the live mode
	Tier  string `json:"tier,omitzero"`  // a granted tier
	Role  string `json:"role,omitzero"`  // a granted role, which bypasses the limit

	code string // the code's limit, if Limit is set
}

// rulingOn returns the ruling on an activity of the code, and the limit that is
// in force for the user. Tier is the tier that the caller names. It returns nil
// if operators changed nothing.
func rulingOn(changed *live.Limits, a limits.Activity, user, tier string, at time.Time) (*ruling, policy.Policy) {
	now, mode := changed.Activity(a)
	roles, granted := changed.Granted(user, at)
	r := ruling{Mode: mode}
	if _, ok := now.Tiers[granted]; ok { // otherwise it is a tier of other activities
		r.Tier, tier = granted, granted
	}
	p, code := now.For(tier), a.For(tier)
	if !p.Equal(code) {
		r.Limit, r.code = p.String(), code.String()
	}
	bypass := lambdafn.BypassRoles()
	for _, role := range roles {
		if slices.Contains(bypass, role) && !a.Unlimited {
			r.Role = role
		}
	}
	if r == (ruling{}) {
		return nil, p
	}
	return &r, p
}

// String returns the ruling for people. It returns an empty text for nil.
func (r *ruling) String() string {
	if r == nil {
		return ""
	}
	var all []string
	add := func(what, value string) {
		if value != "" {
			all = append(all, what+" "+value)
		}
	}
	add("granted role", r.Role)
	add("live mode", r.Mode)
	add("granted tier", r.Tier)
	add("live limit", r.Limit)
	if r.Limit != "" {
		all[len(all)-1] += " (code: " + r.code + ")"
	}
	return strings.Join(all, ", ")
}
