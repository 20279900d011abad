package command

import (
	"context"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/live"
)

type historyCommand struct {
	JSON bool `name:"json" help:"Print one JSON array."`
	tableFlags
}

// Help returns the text below the command's flags.
func (historyCommand) Help() string {
	return `Examples:
  guards limits history
  guards limits history --json`
}

// Run lists all changes, the newest first.
func (c *historyCommand) Run(ctx context.Context, con console) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	changes, err := store.live.SettingsHistory(ctx)
	if err != nil {
		return reached(err)
	}
	if c.JSON {
		return con.printJSON(append([]live.Change{}, changes...))
	}
	var t textTable
	t.row("VERSION", "AT", "BY", "WHAT", "WHY")
	for _, h := range changes {
		t.row(fmt.Sprint(h.Version), h.At.UTC().Format(time.RFC3339), h.By, h.What, h.Why)
	}
	return t.write(con.out, con.width)
}
