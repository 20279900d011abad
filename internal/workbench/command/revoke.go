package command

import (
	"context"
	"errors"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/live"
)

type revokeCommand struct {
	User string `required:"" placeholder:"ID" help:"The user who has the grants."`
	changeFlags
}

// Help returns the text below the command's flags.
func (revokeCommand) Help() string {
	return `Example:
  guards revoke --user u1 --why "the load test is over"`
}

// Run takes back everything that was granted to a user.
func (c *revokeCommand) Run(ctx context.Context, con console) error {
	if err := input.CheckUserID(c.User); err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	r, before, _, err := c.edit(ctx, con, store, "revoke a user's grants", func(s live.Settings) (live.Settings, error) {
		s, n := s.Revoke(c.User)
		if n == 0 {
			return s, errors.New("nothing is granted to " + c.User + " in " + c.where())
		}
		return s, nil
	})
	if err != nil {
		return err
	}
	r.UserID = c.User
	var lines []string
	for _, g := range before.Grants {
		if g.UserID == c.User {
			r.Revoked = append(r.Revoked, g)
			lines = append(lines, c.User+" no longer has "+grantedWhat(g))
		}
	}
	return c.print(con, r, lines...)
}
