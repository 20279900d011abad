package main

import (
	"context"
	"fmt"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/input"
)

type eraseCommand struct {
	User string `required:"" placeholder:"ID" help:"The user to delete."`
	JSON bool   `name:"json" help:"Print the answer as JSON."`
	questionFlags
	tableFlags
}

// Help returns the text below the command's flags.
func (eraseCommand) Help() string {
	return `Examples:
  guards erase --user u1 --dry-run
  guards erase --user u1 --yes`
}

// Run erases a user as the function cleanup does.
func (c *eraseCommand) Run(ctx context.Context, con console) error {
	if err := input.CheckUserID(c.User); err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	if err := c.confirm(ctx, con, fmt.Sprintf("Delete everything about %s in %s?", c.User, c.where())); err != nil {
		return err
	}
	return clean(ctx, con, store, cleanup.Request{UserID: c.User, DryRun: c.DryRun}, c.JSON)
}
