package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// changeFlags are of commands that change the live limits.
type changeFlags struct {
	Why string `placeholder:"TEXT" help:"Why, for the history."`
	By  string `placeholder:"NAME" help:"Who changes it; else the name of the user who runs the command."`
	tableFlags
}

// edit changes the settings, and says when that acts.
func (f *changeFlags) edit(ctx context.Context, con console, what string, edit func(live.Settings) (live.Settings, error)) error {
	store, err := f.open(ctx)
	if err != nil {
		return err
	}
	if f.By == "" {
		if u, err := user.Current(); err == nil {
			f.By = u.Username
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := live.Change{At: con.now(), By: f.By, What: what, Why: f.Why}
	if err := live.Edit(ctx, dynamolive.New(store.Table()), limits.All, c, edit); err != nil {
		return reached(err)
	}
	_, err = fmt.Fprintln(con.out, what+": instances follow within 30 s of use")
	return err
}

// reached makes a table's error one that says so; others stay.
func reached(err error) error {
	if _, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		return input.NewUnavailable(err)
	}
	return err
}

type setCommand struct {
	Activity string `arg:"" help:"The activity: see guards limits."`
	Rate     string `arg:"" optional:"" help:"Its limit, such as 20/1m; a bucket's with a burst, 10/1m+15; several with commas. Its window stays."`
	Tier     string `placeholder:"T" help:"Of this tier only."`
	Mode     string `placeholder:"MODE" help:"enforce; shadow, to refuse nobody; off, not to count either."`
	changeFlags
}

// Help is the command's own help.
func (setCommand) Help() string {
	return `Examples:
  guards limits set create_post 20/1m --why "a launch"
  guards limits set create_post 40/1m --tier premium
  guards limits set create_post --mode off --why "kill switch"`
}

// Run changes an activity.
func (c *setCommand) Run(ctx context.Context, con console) error {
	if c.Rate == "" && c.Mode == "" {
		return errors.New("nothing to set: give a limit such as 20/1m, or --mode")
	}
	if c.Tier != "" && c.Mode != "" {
		return errors.New("a mode is the whole activity's: give --mode without --tier")
	}
	if _, err := owner(c.Activity); err != nil {
		return err
	}
	what := []string{"set", c.Activity}
	if c.Rate != "" {
		what = append(what, c.Rate)
	}
	if c.Tier != "" {
		what = append(what, "for tier", c.Tier)
	}
	if c.Mode != "" {
		what = append(what, "to mode", c.Mode)
	}
	return c.edit(ctx, con, strings.Join(what, " "), func(s live.Settings) (live.Settings, error) {
		return s.Set(c.Activity, c.Tier, c.Rate, c.Mode), nil
	})
}

type unsetCommand struct {
	Activity string `arg:"" help:"The activity: see guards limits diff."`
	Tier     string `placeholder:"T" help:"Of this tier only."`
	changeFlags
}

// Help is the command's own help.
func (unsetCommand) Help() string {
	return `Examples:
  guards limits unset create_post
  guards limits unset create_post --tier premium --why "the launch is over"`
}

// Run takes back what was changed, of activities that the code has no more, too.
func (c *unsetCommand) Run(ctx context.Context, con console) error {
	what := "unset " + c.Activity
	if c.Tier != "" {
		what += " for tier " + c.Tier
	}
	return c.edit(ctx, con, what, func(s live.Settings) (live.Settings, error) { return s.Unset(c.Activity, c.Tier) })
}

type grantCommand struct {
	User   string `required:"" placeholder:"ID" help:"To whom."`
	Role   string `placeholder:"R" xor:"what" help:"A role, such as admin, which is never limited."`
	Tier   string `placeholder:"T" xor:"what" help:"A tier, in place of the one that the caller names."`
	Until  string `required:"" placeholder:"DATE" help:"Through this day (UTC), such as 2026-12-31, or up to a moment, such as 2026-12-31T12:00:00Z."`
	Reason string `required:"" placeholder:"TEXT" help:"Why."`
	changeFlags
}

// Help is the command's own help.
func (grantCommand) Help() string {
	return `Examples:
  guards grant --user u1 --role admin --until 2026-12-31 --reason "load test"
  guards grant --user u1 --tier premium --until 2026-12-31 --reason "trial"`
}

// Run grants.
func (c *grantCommand) Run(ctx context.Context, con console) error {
	until, err := parseUntil(c.Until)
	if err != nil {
		return err
	}
	if !until.After(con.now()) {
		return input.Invalid("--until", input.Show(c.Until), "a time to come")
	}
	g := live.Grant{UserID: c.User, Role: c.Role, Tier: c.Tier, Until: until, Reason: c.Reason}
	what := fmt.Sprintf("grant a user %s%s until %s", c.Role, c.Tier, until.Format(time.RFC3339)) // the history names no user
	if c.Why == "" {
		c.Why = c.Reason
	}
	return c.edit(ctx, con, what, func(s live.Settings) (live.Settings, error) { return s.Grant(g, con.now()), nil })
}

func parseUntil(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return until, input.Invalid("--until", input.Show(text), "a day such as 2026-12-31, or a time such as 2026-12-31T12:00:00Z")
	}
	return until.UTC(), nil
}

type revokeCommand struct {
	User string `required:"" placeholder:"ID" help:"Whose grants."`
	changeFlags
}

// Help is the command's own help.
func (revokeCommand) Help() string {
	return `Example:
  guards revoke --user u1 --why "the load test is over"`
}

// Run takes back all that was granted to a user.
func (c *revokeCommand) Run(ctx context.Context, con console) error {
	return c.edit(ctx, con, "revoke a user's grants", func(s live.Settings) (live.Settings, error) {
		s, n := s.Revoke(c.User)
		if n == 0 {
			return s, errors.New("nothing is granted to this user")
		}
		return s, nil
	})
}
