package main

import (
	"context"
	"fmt"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
)

type resetCommand struct {
	Activity string `arg:"" help:"The activity to clear: see guards limits."`
	User     string `required:"" placeholder:"ID" help:"The user whose activity to clear."`
	JSON     bool   `name:"json" help:"Print the answer as JSON."`
	yesFlag
	tableFlags
}

// Help returns the text below the command's flags.
func (resetCommand) Help() string {
	return `Examples:
  guards reset --user u1 create_post
  guards reset --user u1 create_post --yes --json`
}

// Run resets the activity as the guard that owns it does.
func (c *resetCommand) Run(ctx context.Context, con console) error {
	g, _, err := find(c.Activity)
	if err == nil {
		err = input.CheckUserID(c.User)
	}
	if err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	if err := c.confirm(ctx, con, fmt.Sprintf("Clear %s of %s in %s?", c.Activity, c.User, c.where()), ""); err != nil {
		return err
	}
	h := &guard.Handler{Guard: g, Limiter: store.limiter(con)}
	a, err := decide(ctx, h, guard.Request{UserID: c.User, Activity: c.Activity, Op: guard.Reset})
	if ctx.Err() != nil {
		con.note(fmt.Sprintf("stopped: %s of %s may be cleared or not; see guards status --user %s", c.Activity, c.User, c.User))
	}
	if err != nil {
		return err
	}
	return c.print(con, &a)
}

// print writes the answer.
func (c *resetCommand) print(con console, a *guard.Answer) (err error) {
	switch d := a.Decision; {
	case c.JSON:
		_, err = con.out.Write(append(a.AppendJSON(nil), '\n'))
	case d == nil:
		_, err = fmt.Fprintf(con.out, "%s is %s: nothing is counted\n", c.Activity, a.Reason)
	default:
		_, err = fmt.Fprintf(con.out, "%s of %s: %d/%d used, %d left, in %s\n", c.Activity, c.User, d.Used, d.Limit, d.Remaining, c.where())
	}
	return err
}
