package command

import (
	"context"

	"github.com/cric-talk/guards/internal/live"
)

type unsetCommand struct {
	Activity string `arg:"" help:"The activity: see guards limits diff."`
	Tier     string `placeholder:"T" help:"Undo the change of this tier only."`
	changeFlags
}

// Help returns the text below the command's flags.
func (unsetCommand) Help() string {
	return `Examples:
  guards limits unset create_post
  guards limits unset create_post --tier premium --why "the launch is over"`
}

// Run undoes what was changed. The activity need not exist in the code any
// more.
func (c *unsetCommand) Run(ctx context.Context, con console) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	r, before, after, err := c.edit(ctx, con, store, unsetWords(c.Activity, c.Tier), func(s live.Settings) (live.Settings, error) { return s.Unset(c.Activity, c.Tier) })
	if err != nil {
		return err
	}
	r.Changes = changesOf(con.guards, before, after, c.Activity)
	if len(r.Changes) == 0 {
		return c.print(con, r, nameOf(c.Activity, c.Tier)+": the live limit is removed; it was the same as the code's")
	}
	return c.print(con, r, texts(r.Changes)...)
}
