package command

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

type grantCommand struct {
	User   string `required:"" placeholder:"ID" help:"The user who gets it."`
	Role   string `placeholder:"R" xor:"what" help:"A role in the guards' BYPASS_ROLES, such as admin, which is never limited."`
	Tier   string `placeholder:"T" xor:"what" help:"A tier. It replaces the tier that the caller names."`
	Until  string `required:"" placeholder:"WHEN" help:"The last day (UTC), such as 2026-12-31, the time it ends, such as 2026-12-31T12:00:00Z, or how long it lasts, such as 7d or 12h."`
	Reason string `required:"" placeholder:"TEXT" help:"Why the user gets it. It is stored with the grant."`
	Force  bool   `help:"Accept a tier that no activity has, and a role that is not in BYPASS_ROLES."`
	changeFlags
}

// Help returns the text below the command's flags.
func (grantCommand) Help() string {
	return `A user has at most one tier, and each role once. A new grant replaces the old one.
If the deployed guards have other BYPASS_ROLES than admin, set the same value here.
This command refuses a role that is not in it. Without --why, the history gets
the --reason. Examples:
  guards grant --user u1 --role admin --until 2026-12-31 --reason "load test"
  guards grant --user u1 --tier premium --until 7d --reason "trial"`
}

// Run grants a role or a tier.
func (c *grantCommand) Run(ctx context.Context, con console) error {
	until, err := parseUntil(c.Until, con.now())
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
	if err := c.knownRole(); err != nil {
		return err
	}
	if c.Why == "" {
		c.Why = c.Reason
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	r, before, after, err := c.edit(ctx, con, store, grantWords(g), func(s live.Settings) (live.Settings, error) {
		return s.Grant(g, con.now()), c.knownTier(con.guards, s)
	})
	if err != nil {
		return err
	}
	r.UserID, r.Granted = c.User, &g
	lines := []string{c.User + " has " + grantedWhat(g)}
	for _, old := range before.Grants {
		kept := func(g live.Grant) bool { return g.UserID == old.UserID && grantWords(g) == grantWords(old) }
		if !ended(old, con.now()) && !slices.ContainsFunc(after.Grants, kept) {
			r.Replaced = append(r.Replaced, old)
			lines = append(lines, "this replaces "+grantedWhat(old))
		}
	}
	return c.print(con, r, lines...)
}

// knownRole returns an error if the role is not in BYPASS_ROLES, because it
// would have no effect.
func (c *grantCommand) knownRole() error {
	if c.Role == "" || c.Force {
		return nil
	}
	return known("--role", c.Role, lambdafn.BypassRoles(), "role in BYPASS_ROLES")
}

// knownTier returns an error if neither the code nor the live limits have an
// activity with the tier.
func (c *grantCommand) knownTier(guards limits.Guards, s live.Settings) error {
	if c.Tier == "" || c.Force {
		return nil
	}
	var tiers []string
	for _, g := range guards {
		for _, a := range g.Activities {
			tiers = slices.AppendSeq(tiers, maps.Keys(a.Tiers))
			tiers = slices.AppendSeq(tiers, maps.Keys(s.Activities[a.Name].Tiers))
		}
	}
	return known("--tier", c.Tier, tiers, "tier")
}

// parseUntil returns when a grant ends. A day counts as a whole, so a grant
// until 2026-12-31 ends when 2027 begins. A duration begins now.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	if until, err := time.Parse(time.RFC3339, text); err == nil {
		return until.UTC(), nil
	}
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if last := len(text) - 1; last > 0 {
		n, err := strconv.ParseUint(text[:last], 10, 16)
		if unit := units[text[last]]; err == nil && n < 10_000 && unit != 0 {
			return now.UTC().Truncate(time.Second).Add(time.Duration(n) * unit), nil
		}
	}
	return now, input.Invalid("--until", input.Show(text),
		"a day such as 2026-12-31, a time such as 2026-12-31T12:00:00Z, or a duration such as 7d (units m, h, d, w)")
}
