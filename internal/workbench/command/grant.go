package command

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/wiring"
)

type grantCommand struct {
	ownerFlags
	Role   string `placeholder:"R" xor:"what" help:"A role in the guards' BYPASS_ROLES, such as admin, which is never limited."`
	Tier   string `placeholder:"T" xor:"what" help:"A tier. It replaces the tier that the caller names."`
	Until  string `required:"" placeholder:"WHEN" help:"The last day (UTC), such as 2026-12-31 (9999-12-31 for no end), the time it ends, such as 2026-12-31T12:00:00Z, or how long it lasts, such as 7d or 12h."`
	Reason string `required:"" placeholder:"TEXT" help:"Why they get it. It is stored with the grant."`
	Force  bool   `help:"Accept a tier that no activity has, and a role that is not in BYPASS_ROLES."`
	changeFlags
}

func (grantCommand) Help() string {
	return `A user has at most one tier, and each role once. A new grant replaces the old one.
A subject, such as a tenant, can have a tier, which replaces that of the caller there.
If the deployed guards have other BYPASS_ROLES than admin, set the same value here.
This command refuses a role that is not in it. Without --why, the history gets
the --reason. Examples:
  guards grant --user u1 --role admin --until 2026-12-31 --reason "load test"
  guards grant --user u1 --tier premium --until 7d --reason "trial"
  guards grant --subject {tieredsubject}={tieredsubject}1 --tier {subjecttier} --until 7d --reason "trial"`
}

func (c *grantCommand) Run(ctx context.Context, env session) error {
	until, err := parseUntil(c.Until, env.now())
	if err != nil {
		return err
	}
	key, err := c.keyInOne(env.guards)
	if err != nil {
		return err
	}
	g := live.Grant{UserID: key, Role: c.Role, Tier: c.Tier, Until: until, Reason: c.Reason}
	if err := liveedit.ValidateGrant(g); err != nil {
		return err
	}
	if c.Role != "" && !c.Force { // another role has no effect
		if err := known("--role", c.Role, wiring.Function.BypassRoles(), "role in BYPASS_ROLES"); err != nil {
			return err
		}
	}
	c.Why = cmp.Or(c.Why, c.Reason)
	if err := c.open(ctx); err != nil {
		return err
	}
	change := liveedit.Change{Op: "grant", Activity: subjectOf(key), Role: c.Role, Tier: c.Tier, Until: until} // the history must not name the user
	r, err := c.edit(ctx, env, change, func(s liveedit.Draft) (liveedit.Draft, error) {
		return s.Grant(g, env.now()), c.knownTier(env.guards, s.Settings, subjectOf(key))
	})
	if err != nil {
		return err
	}
	granted := grantOf(g)
	r.owner, r.Granted = granted.owner, &granted
	lines := []string{shown(key) + " has " + grantedWhat(g)}
	for _, old := range liveedit.GrantsAt(r.before, env.now()) {
		if !slices.Contains(r.after.Grants, old) && grantedWhat(old) != grantedWhat(g) {
			r.Replaced = append(r.Replaced, grantOf(old))
			lines = append(lines, "this replaces "+grantedWhat(old))
		}
	}
	return c.print(env, r, lines...)
}

// grantedWhat returns what a grant gives, in words.
func grantedWhat(g live.Grant) string {
	what := "the role " + g.Role
	if g.Role == "" {
		what = "the tier " + g.Tier
	}
	return what + " until " + g.Until.Format(time.RFC3339)
}

// knownTier returns an error if neither the code nor the live limits have an activity
// with the tier. If subject is not empty, the activity's subject must have the tier.
func (c *grantCommand) knownTier(guards limits.Guards, s live.Settings, subject string) error {
	if c.Tier == "" || c.Force {
		return nil
	}
	var tiers []string
	for _, a := range guards.All {
		if a.Has(subject) {
			tiers = slices.AppendSeq(tiers, maps.Keys(a.Part(subject).Tiers))
			tiers = slices.AppendSeq(tiers, maps.Keys(s.Activities[live.Target{Activity: a.Name, Subject: subject}.String()].Tiers))
		}
	}
	return known("--tier", c.Tier, tiers, strings.TrimSpace("tier "+subject))
}

// forever is the last second that a time in JSON can have.
var forever = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// parseUntil returns when a grant, a block or a change ends, after now and at the latest
// forever. Without a text, it is zero: never.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	until, err := parseEnd(text, now)
	switch {
	case err != nil:
	case until.After(forever):
		until = forever
	case !until.After(now):
		err = input.Invalid("--until", input.Show(text), "a time in the future")
	}
	return until, err
}

// parseEnd reads a day, a time or a duration. A day counts as a whole, so a grant
// until 2026-12-31 ends when 2027 begins. A duration begins now.
func parseEnd(text string, now time.Time) (time.Time, error) {
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
		"a day such as 2026-12-31, 9999-12-31 for no end, a time such as 2026-12-31T12:00:00Z, or a duration such as 7d (units m, h, d, w)")
}

type revokeCommand struct {
	ownerFlags
	changeFlags
}

func (revokeCommand) Help() string {
	return `Examples:
  guards revoke --user u1 --why "the load test is over"
  guards revoke --subject {tieredsubject}={tieredsubject}1`
}

func (c *revokeCommand) Run(ctx context.Context, env session) error {
	key, err := c.key() // also of a subject that the code no longer has
	if err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	r, err := c.edit(ctx, env, liveedit.Change{Op: "revoke", Activity: subjectOf(key)}, func(s liveedit.Draft) (liveedit.Draft, error) {
		s, n := s.Revoke(key)
		if n == 0 {
			return s, errors.New("nothing is granted to " + shown(key) + " in " + c.where())
		}
		return s, nil
	})
	if err != nil {
		return err
	}
	r.owner = ownerOf(key)
	var lines []string
	for _, g := range r.before.Grants {
		if g.UserID == key {
			r.Revoked = append(r.Revoked, grantOf(g))
			lines = append(lines, shown(key)+" no longer has "+grantedWhat(g))
		}
	}
	return c.print(env, r, lines...)
}
