package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

type setCommand struct {
	Activity string `arg:"" help:"The activity: see guards limits."`
	Limit    string `arg:"" optional:"" help:"Its new limit, such as 20/1m or \"bucket 1/3s\". It must be of the same kind as the code's limit and, except for a bucket, have the same window."`
	Tier     string `placeholder:"T" help:"Change the limit of this tier only."`
	Mode     string `placeholder:"MODE" help:"enforce; shadow to refuse nobody; off to count nothing. Asks before it switches off."`
	Force    bool   `help:"Accept a tier that the activity does not have."`
	yesFlag
	changeFlags
}

func (setCommand) Help() string {
	return `A limit is written as guards limits shows it. Quote it if it contains a space.
Examples:
  guards limits set {activity} {limit} --why "a launch"
  guards limits set {tiered} {tierlimit} --tier {tier}
  guards limits set {activity} --mode off --why "kill switch"`
}

func (c *setCommand) Run(ctx context.Context, con session) error {
	if c.Limit == "" && c.Mode == "" {
		return errors.New("nothing to set: give a limit such as 20/1m, or --mode")
	}
	if c.Tier != "" && c.Mode != "" {
		return errors.New("a mode holds for the whole activity: give --mode without --tier")
	}
	_, a, err := con.find(c.Activity)
	if err != nil {
		return err
	}
	if a.Unlimited {
		return input.Invalid("activity", input.Show(c.Activity), "an activity that has a limit")
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	if c.Mode == "off" {
		question := fmt.Sprintf("Switch %s off in %s? Nobody is limited then, and nothing is counted.", c.Activity, c.where())
		if err := c.confirm(ctx, con, question, ""); err != nil {
			return err
		}
	}
	change := live.Change{Op: "set", Activity: c.Activity, Tier: c.Tier, Limit: c.Limit, Mode: c.Mode}
	r, err := c.edit(ctx, con, store, change, func(s live.Settings) (live.Settings, error) {
		return s.Set(c.Activity, c.Tier, c.Limit, c.Mode), c.knownTier(a, s.Activities[c.Activity])
	})
	if err != nil {
		return err
	}
	return c.printChanges(con, r, c.Activity, c.Activity+": nothing differs from before")
}

// knownTier returns an error if neither the code's activity nor its override
// has the tier, unless --force is given.
func (c *setCommand) knownTier(a limits.Activity, o live.Override) error {
	if c.Tier == "" || c.Force {
		return nil
	}
	tiers := slices.AppendSeq(slices.Collect(maps.Keys(a.Tiers)), maps.Keys(o.Tiers))
	return known("--tier", c.Tier, tiers, "tier of "+c.Activity)
}

type unsetCommand struct {
	Activity string `arg:"" help:"The activity: see guards limits diff."`
	Tier     string `placeholder:"T" help:"Undo the change of this tier only."`
	changeFlags
}

func (unsetCommand) Help() string {
	return `Examples:
  guards limits unset {activity}
  guards limits unset {tiered} --tier {tier} --why "the launch is over"`
}

// Run undoes what was changed, also if the code no longer has the activity.
func (c *unsetCommand) Run(ctx context.Context, con session) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	change := live.Change{Op: "unset", Activity: c.Activity, Tier: c.Tier}
	r, err := c.edit(ctx, con, store, change, func(s live.Settings) (live.Settings, error) { return s.Unset(c.Activity, c.Tier) })
	if err != nil {
		return err
	}
	return c.printChanges(con, r, c.Activity, nameOf(c.Activity, c.Tier)+": the live limit is removed; it was the same as the code's")
}
