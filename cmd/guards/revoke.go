package main

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
	return c.edit(ctx, con, "revoke a user's grants", func(s live.Settings) (live.Settings, error) {
		s, n := s.Revoke(c.User)
		if n == 0 {
			return s, errors.New("nothing is granted to this user")
		}
		return s, nil
	})
}
