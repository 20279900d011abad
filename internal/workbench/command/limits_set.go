package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
)

type setCommand struct {
	Activity string `arg:"" optional:"" help:"The activity: see guards limits. With --group, the name of a limit. Not with --guard or --all."`
	Limit    string `arg:"" optional:"" help:"Its new limit, such as 20/1m or \"bucket 1/3s\". It must be of the same kind as the code's limit and, except for a bucket, have the same window."`
	Group    string `placeholder:"G" help:"Change the number of a limit in each activity of this group."`
	Subject  string `placeholder:"NAME" help:"Change the limit of this subject of the activity, such as room."`
	Tier     string `placeholder:"T" help:"Change the limit of this tier only."`
	Mode     string `placeholder:"MODE" help:"enforce; shadow to refuse nobody; off to count nothing; deployed for the function's own mode. Asks before it switches off."`
	Until    string `placeholder:"WHEN" help:"The change ends by itself: on a day, at a time, or after as long as 2h, as for guards grant. Default: it stays."`
	Guard    string `placeholder:"NAME" xor:"many" help:"Set the mode of each activity of this guard."`
	All      bool   `xor:"many" help:"Set the mode of each activity of all guards: a kill switch, with --mode off."`
	Force    bool   `help:"Accept a tier that the activity does not have."`
	yesFlag
	changeFlags
}

func (setCommand) Help() string {
	return `A limit is written as guards limits shows it. Quote it if it contains a space.
Where a limit has a max, callers can give a number up to it. A live limit with a lower max
lowers that for everybody; without a max, it keeps the code's.
Examples:
  guards limits set {activity} {limit} --why "a launch"
  guards limits set {tiered} {tierlimit} --tier {tier}
  guards limits set --group {group} {named} {namedlimit}
  guards limits set {counted} {subjectlimit} --subject {subject}
  guards limits set {activity} {limit} --until 2h --why "a launch"
  guards limits set {activity} --mode off --why "kill switch"
  guards limits set --all --mode off --until 1h --why "an incident"
  guards limits set --all --mode deployed`
}

func (c *setCommand) Run(ctx context.Context, env session) error {
	if c.Guard != "" || c.All {
		return c.setMany(ctx, env)
	}
	if c.Activity == "" {
		return errors.New("an activity is missing: see guards limits, or give --guard or --all to set the mode of many")
	}
	until, err := parseUntil(c.Until, env.now())
	if err != nil {
		return err
	}
	if c.Limit == "" && c.Mode == "" {
		return errors.New("nothing to set: give a limit such as 20/1m, or --mode")
	}
	switch {
	case c.Tier != "" && c.Mode != "":
		return errors.New("a mode holds for the whole activity: give --mode without --tier")
	case c.Subject != "" && c.Mode != "":
		return errors.New("a mode holds for the whole activity: give --mode without --subject")
	}
	all, err := c.find(env)
	if err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if c.Mode == live.Off {
		question := fmt.Sprintf("Switch %s off in %s%s? Nobody is limited then, and nothing is counted.", c.Activity, c.where(), untilWhen(until))
		if err := c.confirm(ctx, env, question, ""); err != nil {
			return err
		}
	}
	name := targetOf(c.Group, c.Subject, c.Activity).String()
	change := liveedit.Change{Op: "set", Activity: name, Tier: c.Tier, Limit: c.Limit, Mode: c.Mode, Until: until}
	r, err := c.edit(ctx, env, change, func(s liveedit.Draft) (liveedit.Draft, error) {
		return c.set(s, name, until), c.knownTier(all, s.Activities[name])
	})
	if err != nil {
		return err
	}
	for _, a := range all {
		one := live.Target{Activity: a.Name, Subject: c.Subject}.String()
		if own := r.after.Activities[one].Text(c.Tier); c.Group != "" && own != "" {
			env.note(fmt.Sprintf("%s keeps its own live limit, %s", nameOf(one, c.Tier), own))
		}
	}
	c.noteKept(env, r, all)
	c.noteGone(env, r, until, name)
	return c.printChanges(env, r, name+": nothing differs from before", name)
}

// untilWhen returns the words for an end; empty for none.
func untilWhen(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return " until " + until.Format(time.RFC3339)
}

// set sets what the command has set of one activity.
func (c *setCommand) set(d liveedit.Draft, name string, until time.Time) liveedit.Draft {
	d = d.Set(name, c.Tier, c.Limit, c.Mode)
	if !until.IsZero() {
		d = d.Until(name, c.Tier, c.Limit, c.Mode, until)
	}
	return d
}

// setMany sets the mode of each activity of one guard, or of all guards. Activities without a
// limit have none.
func (c *setCommand) setMany(ctx context.Context, env session) error {
	if c.Mode == "" || c.Activity != "" || c.Group != "" || c.Subject != "" || c.Tier != "" || c.Force {
		return errors.New("--guard and --all set a mode: give --mode, and no activity, tier, subject or group")
	}
	until, err := parseUntil(c.Until, env.now())
	if err != nil {
		return err
	}
	of, what, names, err := c.many(env.guards)
	if err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if c.Mode != live.Enforce && c.Mode != liveedit.AsDeployed {
		question := fmt.Sprintf("Set %s to mode %s in %s%s?", what, c.Mode, c.where(), untilWhen(until))
		if err := c.confirm(ctx, env, question, ""); err != nil {
			return err
		}
	}
	r, err := c.edit(ctx, env, liveedit.Change{Op: "set", Guard: of, Mode: c.Mode, Until: until}, func(d liveedit.Draft) (liveedit.Draft, error) {
		for _, name := range names {
			d = c.set(d, name, until)
		}
		return d, nil
	})
	if err != nil {
		return err
	}
	c.noteGone(env, r, until, names...)
	return c.printChanges(env, r, what+": nothing differs from before", names...)
}

// many returns the activities with a limit of --guard or --all, and how the history and a
// person call them.
func (c *setCommand) many(guards limits.Guards) (of, what string, activities []string, err error) {
	of, what = "all", "everything"
	if c.Guard != "" {
		g, ok := guards.Named(c.Guard)
		if !ok {
			var names []string
			for _, g := range guards {
				names = append(names, g.Name)
			}
			return "", "", nil, unknown("--guard", c.Guard, names, "guard")
		}
		of, what, guards = g.Name, "each activity of "+g.Name, limits.Guards{g}
	}
	for _, a := range guards.All {
		if !a.Unlimited {
			activities = append(activities, a.Name)
		}
	}
	return of, what, activities, nil
}

// noteKept tells which limits of the activities a new limit leaves alone, because it is for
// callers without a tier, or for one tier or subject. It also tells of a max in the new limit.
func (c *setCommand) noteKept(env session, r report, all []limits.Activity) {
	if c.Limit == "" || c.JSON {
		return
	}
	v, hasMax := env.viewOf(r.after), false
	for _, a := range all {
		var kept []string
		for _, part := range a.Parts() {
			for _, tier := range append([]string{""}, slices.Sorted(maps.Keys(part.Tiers))...) {
				limit, _ := v.inForce(a, part.Name, tier)
				if part.Name == c.Subject && tier == c.Tier {
					hasMax = hasMax || strings.Contains(limit, " max ")
				} else {
					kept = append(kept, nameOf(live.Target{Activity: a.Name, Subject: part.Name}.String(), tier)+" keeps "+limit)
				}
			}
		}
		if len(kept) > 0 {
			env.note(strings.Join(kept, "; "))
		}
	}
	if hasMax {
		env.note(upToMax)
	}
}

// noteGone tells what was set before and does not come back when the change ends.
func (c *setCommand) noteGone(env session, r report, until time.Time, names ...string) {
	if until.IsZero() {
		return
	}
	var gone []string
	for _, name := range names {
		old, now := r.before.Activities[name], r.after.Activities[name]
		if was := old.Text(c.Tier); c.Limit != "" && was != "" && was != now.Text(c.Tier) {
			gone = append(gone, nameOf(name, c.Tier)+": "+was)
		}
		if c.Mode != "" && old.Mode != "" && old.Mode != now.Mode {
			gone = append(gone, name+": mode "+old.Mode)
		}
	}
	if len(gone) > 0 {
		env.note("then the code's limit and the function's mode hold, and not what was set before: " + strings.Join(gone, "; "))
	}
}

// find returns the activities whose limit is to change: one, or the activities of the
// group that have the limit.
func (c *setCommand) find(env session) ([]limits.Activity, error) {
	switch {
	case c.Group == "":
		_, a, err := env.find(c.Activity)
		if err == nil && a.Unlimited {
			err = input.Invalid("activity", input.Show(c.Activity), "an activity that has a limit")
		}
		if err == nil {
			err = hasSubject(a, c.Subject)
		}
		return []limits.Activity{a}, err
	case c.Mode != "":
		return nil, errors.New("a mode holds for an activity: give --mode without --group")
	case c.Force:
		return nil, errors.New("--force goes without --group: an activity of the group must have the tier")
	}
	return env.findInGroup(c.Group, c.Subject, c.Activity)
}

// knownTier returns an error if neither one of the code's activities nor the override
// has the tier, unless --force is given.
func (c *setCommand) knownTier(all []limits.Activity, o live.Override) error {
	if c.Tier == "" || c.Force {
		return nil
	}
	tiers := slices.Collect(maps.Keys(o.Tiers))
	for _, a := range all {
		tiers = slices.AppendSeq(tiers, maps.Keys(a.Part(c.Subject).Tiers))
	}
	kind := "tier of " + strings.Join(namesOf(all), ", ")
	if c.Subject != "" {
		kind += " for " + c.Subject
	}
	if c.Group != "" {
		return unknown("--tier", c.Tier, tiers, kind)
	}
	return known("--tier", c.Tier, tiers, kind)
}

type unsetCommand struct {
	Activity string `arg:"" help:"The activity: see guards limits diff. With --group, the name of a limit."`
	Group    string `placeholder:"G" help:"Undo the change of a limit of this group."`
	Subject  string `placeholder:"NAME" help:"Undo the change of this subject of the activity, such as room."`
	Tier     string `placeholder:"T" help:"Undo the change of this tier only."`
	changeFlags
}

func (unsetCommand) Help() string {
	return `Examples:
  guards limits unset {activity}
  guards limits unset {tiered} --tier {tier} --why "the launch is over"
  guards limits unset --group {group} {named}
  guards limits unset {counted} --subject {subject}`
}

// targetOf returns what the flags and the argument of a command name. With a group, the
// argument is the name of one of its limits.
func targetOf(group, subject, argument string) live.Target {
	if group == "" {
		return live.Target{Activity: argument, Subject: subject}
	}
	return live.Target{Group: group, Subject: subject, Limit: argument}
}

// Run undoes what was changed, even if the code no longer has the activity or the group.
func (c *unsetCommand) Run(ctx context.Context, env session) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	name := targetOf(c.Group, c.Subject, c.Activity).String()
	change := liveedit.Change{Op: "unset", Activity: name, Tier: c.Tier}
	r, err := c.edit(ctx, env, change, func(s liveedit.Draft) (liveedit.Draft, error) {
		if _, set := s.Activities[name]; c.Group != "" && !set {
			if _, err := env.findInGroup(c.Group, c.Subject, c.Activity); err != nil {
				return s, err
			}
		}
		return s.Unset(name, c.Tier)
	})
	if err != nil {
		return err
	}
	return c.printChanges(env, r, nameOf(name, c.Tier)+": the live limit is removed; it was the same as the code's", name)
}
