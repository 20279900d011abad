package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
)

// questionFlags are of commands that delete.
type questionFlags struct {
	Yes    bool `short:"y" help:"Do not ask before deleting."`
	DryRun bool `help:"Delete nothing, and say what would go."`
}

// confirm asks a person, where there is one.
func (f *questionFlags) confirm(ctx context.Context, con console, question string) error {
	if f.Yes || f.DryRun {
		return nil
	}
	return con.confirm(ctx, question)
}

// confirm asks whether to delete. It does not wait for an answer past ctx's end.
func (c console) confirm(ctx context.Context, question string) error {
	if c.in == nil {
		return errors.New("nobody is there to ask: give --yes to delete, or --dry-run to see what would go")
	}
	_, _ = fmt.Fprintf(c.err, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(c.in).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		_, _ = fmt.Fprintln(c.err)
		return errInterrupted
	}
}

type resetCommand struct {
	Activity string `arg:"" help:"The activity to forget: see guards limits."`
	User     string `required:"" placeholder:"ID" help:"Whose."`
	JSON     bool   `name:"json" help:"Print the answer as JSON."`
	Yes      bool   `short:"y" help:"Do not ask before deleting."`
	tableFlags
}

// Help is the command's own help.
func (resetCommand) Help() string {
	return `Examples:
  guards reset --user u1 create_post
  guards reset --user u1 create_post --yes --json`
}

// Run resets through the guard that owns the activity.
func (c *resetCommand) Run(ctx context.Context, con console) error {
	rules, err := owner(c.Activity)
	if err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	g := &guard.Guard{Rules: rules, Limiter: &ratelimit.Limiter{Store: store, Now: con.now}}
	if !c.Yes {
		if err := con.confirm(ctx, fmt.Sprintf("Forget what is counted of this user's %s?", c.Activity)); err != nil {
			return err
		}
	}
	a, err := decide(ctx, g, guard.Request{UserID: c.User, Activity: c.Activity, Op: guard.Reset})
	if err != nil {
		return err
	}
	if c.JSON {
		_, err = con.out.Write(append(a.AppendJSON(nil), '\n'))
		return err
	}
	if a.Decision == nil {
		_, err = fmt.Fprintf(con.out, "%s is %s: nothing is counted\n", c.Activity, a.Reason)
		return err
	}
	_, err = fmt.Fprintf(con.out, "%s: %d/%d used, %d left\n", c.Activity, a.Decision.Used, a.Decision.Limit, a.Decision.Remaining)
	return err
}

type eraseCommand struct {
	User string `required:"" placeholder:"ID" help:"Whom to forget."`
	JSON bool   `name:"json" help:"Print the answer as JSON."`
	questionFlags
	tableFlags
}

// Help is the command's own help.
func (eraseCommand) Help() string {
	return `Examples:
  guards erase --user u1 --dry-run
  guards erase --user u1 --yes`
}

// Run erases as the function cleanup does.
func (c *eraseCommand) Run(ctx context.Context, con console) error {
	if err := input.CheckUserID(c.User); err != nil {
		return err
	}
	if err := c.confirm(ctx, con, "Delete everything that is kept of this user?"); err != nil {
		return err
	}
	return clean(ctx, con, &c.tableFlags, cleanup.Request{UserID: c.User, DryRun: c.DryRun}, c.JSON)
}

type cleanupCommand struct {
	JSON bool `name:"json" help:"Print the answer as JSON."`
	questionFlags
	tableFlags
}

// Help is the command's own help.
func (cleanupCommand) Help() string {
	return `Examples:
  guards cleanup --dry-run
  guards cleanup --yes --json`
}

// Run sweeps as the function cleanup does.
func (c *cleanupCommand) Run(ctx context.Context, con console) error {
	if err := c.confirm(ctx, con, "Delete everything that has expired?"); err != nil {
		return err
	}
	return clean(ctx, con, &c.tableFlags, cleanup.Request{DryRun: c.DryRun}, c.JSON)
}

// clean runs cleanup on a table, with its progress where somebody watches.
func clean(ctx context.Context, con console, flags *tableFlags, r cleanup.Request, asJSON bool) error {
	store, err := flags.open(ctx)
	if err != nil {
		return err
	}
	parts := 0
	run := &cleanup.Cleanup{Table: table.New(store.Table()), Forget: forget(dynamolive.New(store.Table()), con), Now: con.now, Progress: func(s table.Swept) {
		soFar := fmt.Sprintf("%s items, %s to go, %s deleted", grouped(s.Scanned), grouped(s.Stale), grouped(s.Deleted))
		if r.UserID != "" { // nobody knows how many are kept of a user
			con.tell(soFar)
			return
		}
		parts++
		con.bar(parts, table.Parts, soFar)
	}}
	a, err := run.Run(ctx, r)
	con.told()
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(con.out).Encode(a)
	}
	went := fmt.Sprintf("%d deleted", a.Deleted)
	if r.DryRun {
		went = "none deleted, as this is a dry run"
	}
	_, err = fmt.Fprintf(con.out, "%d items of %d users looked at, %d to go, %s\n", a.Scanned, a.Users, a.Stale, went)
	return err
}

// forget drops what was granted to a user.
func forget(settings live.Table, con console) func(context.Context, string) error {
	return func(ctx context.Context, userID string) error {
		_, err := live.Forget(ctx, settings, limits.All, userID, con.now())
		return err
	}
}
