package main

import (
	"context"
	"errors"
	"strings"

	"github.com/cric-talk/guards/internal/live"
)

type setCommand struct {
	Activity string `arg:"" help:"The activity: see guards limits."`
	Limit    string `arg:"" optional:"" help:"Its new limit, such as 20/1m or \"bucket 1/3s\". It must be of the same kind as the code's limit and, except for a bucket, have the same window."`
	Tier     string `placeholder:"T" help:"Change the limit of this tier only."`
	Mode     string `placeholder:"MODE" help:"enforce; shadow to refuse nobody; off to count nothing."`
	changeFlags
}

// Help returns the text below the command's flags.
func (setCommand) Help() string {
	return `A limit is written as guards limits shows it. Quote it if it contains a space.
Examples:
  guards limits set create_post 20/1m --why "a launch"
  guards limits set create_post 40/1m --tier premium
  guards limits set send_message "bucket 1/3s keep 1h"
  guards limits set ingest "sliding 80/1h"
  guards limits set create_post --mode off --why "kill switch"`
}

// Run changes an activity.
func (c *setCommand) Run(ctx context.Context, con console) error {
	if c.Limit == "" && c.Mode == "" {
		return errors.New("nothing to set: give a limit such as 20/1m, or --mode")
	}
	if c.Tier != "" && c.Mode != "" {
		return errors.New("a mode holds for the whole activity: give --mode without --tier")
	}
	if _, _, err := find(c.Activity); err != nil {
		return err
	}
	what := []string{"set", c.Activity}
	if c.Limit != "" {
		what = append(what, c.Limit)
	}
	if c.Tier != "" {
		what = append(what, "for tier", c.Tier)
	}
	if c.Mode != "" {
		what = append(what, "to mode", c.Mode)
	}
	return c.edit(ctx, con, strings.Join(what, " "), func(s live.Settings) (live.Settings, error) {
		return s.Set(c.Activity, c.Tier, c.Limit, c.Mode), nil
	})
}
