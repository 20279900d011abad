package command

import (
	"context"
	"errors"
	"io"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

type listCommand struct {
	JSON     bool `name:"json" help:"Print one JSON array." xor:"form"`
	Markdown bool `help:"Print a table for a document." xor:"form,live"`
	Live     bool `help:"Show the limits in force beside the code's, with modes and grants, and with who set them and when. Reads the table." xor:"live"`
	tableFlags
}

// Help returns the text below the command's flags.
func (listCommand) Help() string {
	return `Examples:
  guards limits
  guards limits --json
  guards limits --markdown
  guards limits --live
  guards limits --live --json`
}

// A listed is one activity of the list.
type listed struct {
	Function string       `json:"function"`
	Activity string       `json:"activity"`
	Policy   string       `json:"policy"` // the limit's text form, or "unlimited"
	Limit    int64        `json:"limit,omitzero"`
	WindowMs int64        `json:"windowMs,omitzero"`
	Tiers    limits.Tiers `json:"tiers,omitempty"`
}

// Run lists the code's limits, or those in force.
func (c *listCommand) Run(ctx context.Context, con console) error {
	if c.Live {
		return c.live(ctx, con)
	}
	if c.given() {
		return errors.New("--table, --endpoint and --region go with --live")
	}
	all := list(con.guards)
	switch {
	case c.JSON:
		return con.printJSON(all)
	case c.Markdown:
		_, err := io.WriteString(con.out, scaffold.Markdown(con.guards))
		return err
	}
	var t textTable
	t.row("FUNCTION", "ACTIVITY", "LIMIT", "TIERS")
	for _, l := range all {
		t.row(l.Function, l.Activity, l.Policy, scaffold.Tiers(l.Tiers, ""))
	}
	return t.write(con.out, con.width)
}

// list returns the activities of all guards.
func list(guards limits.Guards) (all []listed) {
	for _, g := range guards {
		for _, a := range g.Activities {
			l := listed{Function: g.Name, Activity: a.Name, Policy: "unlimited", Tiers: a.Tiers}
			if !a.Unlimited {
				figures := a.Limit.Read(0, 0, nil)
				l.Policy, l.Limit, l.WindowMs = a.Limit.String(), figures.Limit, figures.Window.Milliseconds()
			}
			all = append(all, l)
		}
	}
	return all
}
