package command

import "context"

type cleanupCommand struct{ sweepFlags }

func (cleanupCommand) Help() string {
	return `Examples:
  guards cleanup --dry-run
  guards cleanup --yes --json`
}

// Run sweeps the table as the function cleanup does.
func (c *cleanupCommand) Run(ctx context.Context, env session) error {
	return c.clean(ctx, env, "everything that has expired", "", false)
}
