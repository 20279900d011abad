package command

import (
	"context"

	"github.com/cric-talk/guards/internal/input"
)

type eraseCommand struct {
	User string `required:"" placeholder:"ID" help:"The user to delete."`
	sweepFlags
}

// Help returns the text below the command's flags.
func (eraseCommand) Help() string {
	return `This deletes all items of the user, expired or not, and takes back the user's
grants. Examples:
  guards erase --user u1 --dry-run
  guards erase --user u1 --yes`
}

// Run erases a user as the function cleanup does.
func (c *eraseCommand) Run(ctx context.Context, con console) error {
	if err := input.CheckUserID(c.User); err != nil {
		return err
	}
	return c.clean(ctx, con, "everything about "+c.User, c.User)
}
