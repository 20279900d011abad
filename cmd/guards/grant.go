package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/live"
)

type grantCommand struct {
	User   string `required:"" placeholder:"ID" help:"The user who gets it."`
	Role   string `placeholder:"R" xor:"what" help:"A role, such as admin, which is never limited."`
	Tier   string `placeholder:"T" xor:"what" help:"A tier. It replaces the tier that the caller names."`
	Until  string `required:"" placeholder:"DATE" help:"The last day (UTC), such as 2026-12-31, or the time it ends, such as 2026-12-31T12:00:00Z."`
	Reason string `required:"" placeholder:"TEXT" help:"The reason."`
	changeFlags
}

// Help returns the text below the command's flags.
func (grantCommand) Help() string {
	return `Examples:
  guards grant --user u1 --role admin --until 2026-12-31 --reason "load test"
  guards grant --user u1 --tier premium --until 2026-12-31 --reason "trial"`
}

// Run grants a role or a tier.
func (c *grantCommand) Run(ctx context.Context, con console) error {
	until, err := parseUntil(c.Until)
	if err != nil {
		return err
	}
	if !until.After(con.now()) {
		return input.Invalid("--until", input.Show(c.Until), "a time in the future")
	}
	g := live.Grant{UserID: c.User, Role: c.Role, Tier: c.Tier, Until: until, Reason: c.Reason}
	if err := g.Validate(); err != nil {
		return err
	}
	// The history must not name the user.
	what := fmt.Sprintf("grant a user %s%s until %s", c.Role, c.Tier, until.Format(time.RFC3339))
	if c.Why == "" {
		c.Why = c.Reason
	}
	return c.edit(ctx, con, what, func(s live.Settings) (live.Settings, error) { return s.Grant(g, con.now()), nil })
}

// parseUntil returns when a grant ends. A day counts as a whole, so a grant
// until 2026-12-31 ends when 2027 begins.
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
