package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
)

type resetCommand struct {
	Activity string `arg:"" help:"The activity to clear: see guards limits."`
	User     string `required:"" placeholder:"ID" help:"The user whose activity to clear."`
	JSON     bool   `name:"json" help:"Print the answer as JSON."`
	yesFlag
	tableFlags

	clears string // what is cleared, for people; Run sets it
}

func (resetCommand) Help() string {
	return `A reset of an activity in a group clears the whole group of this user.
Examples:
  guards reset --user u1 {activity}
  guards reset --user u1 {activity} --yes --json`
}

// Run resets the activity as the guard that owns it does.
func (c *resetCommand) Run(ctx context.Context, con session) error {
	g, a, err := con.find(c.Activity)
	if err == nil {
		err = input.CheckUserID(c.User)
	}
	if err != nil {
		return err
	}
	counted := countedIn(con.guards, itemOf(a))
	if queues(counted) {
		return hint{
			errors.New(c.Activity + " can't be reset, because its places are given away: jobs wait for them"),
			"guards erase --user " + c.User + " deletes everything about the user",
		}
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.clears = c.Activity
	if a.Group != "" {
		c.clears = groupOf(counted)
	}
	if err := c.confirm(ctx, con, fmt.Sprintf("Clear %s of %s in %s?", c.clears, c.User, c.where()), ""); err != nil {
		return err
	}
	changed, err := con.follow(ctx, store.live)
	if _, ok := errors.AsType[*input.Unavailable](err); ok {
		return err
	}
	if err != nil {
		con.note("the figures are those of the code's limit, because the live limits can't be read: " + err.Error())
	}
	// The figures need the limit in force. The guard that resets does not follow
	// the live limits: in mode off, it would reset nothing.
	a.Limit = termsOf(changed.Limits(), a, c.User, "", con.now()).Limit
	g.Activities = []limits.Activity{a}
	h := &guard.Handler{Guard: g, Limiter: store.limiter(con)}
	answer, err := decide(ctx, h, guard.Request{UserID: c.User, Activity: c.Activity, Op: guard.Reset})
	if ctx.Err() != nil {
		con.note(fmt.Sprintf("stopped: %s of %s may be cleared or not; see guards status --user %s", c.clears, c.User, c.User))
	}
	if err != nil {
		return err
	}
	return c.print(con, &answer)
}

func (c *resetCommand) print(con session, a *guard.Answer) (err error) {
	switch d := a.Decision; {
	case c.JSON:
		_, err = con.out.Write(append(a.AppendJSON(nil), '\n'))
	case d == nil:
		_, err = fmt.Fprintf(con.out, "%s is %s: nothing is counted\n", c.Activity, a.Reason)
	default:
		where := c.where()
		if c.clears != c.Activity {
			where += "; " + c.clears + " is cleared"
		}
		_, err = fmt.Fprintf(con.out, "%s of %s: %d/%d used, %d left, in %s\n", c.Activity, c.User, d.Used, d.Limit, d.Remaining, where)
	}
	return err
}

type eraseCommand struct {
	User string `required:"" placeholder:"ID" help:"The user to delete."`
	sweepFlags
}

func (eraseCommand) Help() string {
	return `This deletes all items of the user, expired or not, and takes back the user's
grants. Examples:
  guards erase --user u1 --dry-run
  guards erase --user u1 --yes`
}

// Run erases a user as the function cleanup does.
func (c *eraseCommand) Run(ctx context.Context, con session) error {
	if err := input.CheckUserID(c.User); err != nil {
		return err
	}
	return c.clean(ctx, con, "everything about "+c.User, c.User)
}
