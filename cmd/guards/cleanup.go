package main

import (
	"context"
	"fmt"

	"github.com/cric-talk/guards/internal/cleanup"
)

type cleanupCommand struct {
	JSON bool `name:"json" help:"Print the answer as JSON."`
	questionFlags
	tableFlags
}

// Help returns the text below the command's flags.
func (cleanupCommand) Help() string {
	return `Examples:
  guards cleanup --dry-run
  guards cleanup --yes --json`
}

// Run sweeps the table as the function cleanup does.
func (c *cleanupCommand) Run(ctx context.Context, con console) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	if err := c.confirm(ctx, con, fmt.Sprintf("Delete everything that has expired in %s?", c.where())); err != nil {
		return err
	}
	return clean(ctx, con, store, cleanup.Request{DryRun: c.DryRun}, c.JSON)
}
