package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type checkCommand struct {
	Activity string   `arg:"" help:"What the user does, such as create_post: see guards limits."`
	User     string   `required:"" placeholder:"ID" help:"Who is limited."`
	Count    int64    `default:"1" placeholder:"N" help:"How many actions at once (${default})."`
	Partial  bool     `help:"Grant as many of --count as fit, instead of all or nothing."`
	Times    int      `default:"1" placeholder:"N" help:"Ask N times in a row (${default})."`
	Tier     string   `placeholder:"T" help:"The user's plan."`
	Role     []string `placeholder:"R" help:"A role of the user's; may be given again."`
	JSON     bool     `name:"json" help:"Print each answer as one line of JSON."`
	storeFlags
}

// Help is the command's own help.
func (checkCommand) Help() string {
	return `Examples:
  guards check create_post --user u1 --times 12
  guards check create_post --user u1 --store dynamodb --table rateLimit --json`
}

// Run asks, and ends with errRefused if any was refused.
func (c *checkCommand) Run(ctx context.Context, con console) error {
	if c.Times < 1 {
		return input.Invalid("--times", fmt.Sprint(c.Times), "at least 1")
	}
	if c.Count < 1 {
		return input.Invalid("--count", fmt.Sprint(c.Count), "at least 1")
	}
	rules, err := owner(c.Activity)
	if err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	now, err := follow(ctx, store.live)
	if err != nil {
		return err
	}
	g := &guard.Guard{Rules: rules, Limiter: store.limiter(con), Live: now, BypassRoles: []string{"admin"}}
	var last error
	for i := range c.Times {
		if ctx.Err() != nil {
			return errInterrupted
		}
		a, err := decide(ctx, g, guard.Request{
			UserID: c.User, Activity: c.Activity, Op: guard.Check,
			Count: c.Count, Partial: c.Partial, Tier: c.Tier, Roles: c.Role,
		})
		if err != nil {
			return err
		}
		if c.JSON {
			_, err = con.out.Write(append(a.AppendJSON(nil), '\n'))
		} else {
			_, err = fmt.Fprintln(con.out, c.line(con, i+1, a))
		}
		if err != nil {
			return err
		}
		if !a.Allowed {
			last = errRefused
		}
	}
	return last
}

// decide has g decide while a person waits.
func decide(ctx context.Context, g *guard.Guard, r guard.Request) (guard.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return g.Decide(ctx, r)
}

// line is an answer for people, aligned with the others of this command.
func (c *checkCommand) line(con console, n int, a guard.Answer) string {
	width := len(fmt.Sprint(c.Times))
	if a.Decision == nil {
		return fmt.Sprintf("%*d  %s  %s", width, n, con.paint(green, "allowed"), a.Reason)
	}
	verdict := con.verdict(a.Allowed, string(a.Reason))
	var b strings.Builder
	digits := len(fmt.Sprint(a.Decision.Limit))
	fmt.Fprintf(&b, "%*d  %s  %*d/%d used", width, n, verdict, digits, a.Decision.Used, a.Decision.Limit)
	if a.Allowed {
		fmt.Fprintf(&b, ", %*d left", digits, a.Decision.Remaining)
	}
	if a.Allowed && a.Granted < a.Count {
		fmt.Fprintf(&b, ", %d of %d granted", a.Granted, a.Count)
	}
	if ready := a.Decision.ReadyAt; ready != 0 {
		fmt.Fprintf(&b, "  ready at %s UTC (wait %s), place %d", time.UnixMilli(ready).UTC().Format(time.TimeOnly), wait(a.Decision.Wait), a.Decision.Enqueued)
	} else if a.Message != "" {
		fmt.Fprintf(&b, "  %s (wait %s)", a.Message, wait(a.Decision.Wait))
	}
	return b.String()
}

// verdict is what a guard said, in a word.
func (c console) verdict(allowed bool, reason string) string {
	switch {
	case allowed:
		return c.paint(green, "allowed")
	case reason == string(ratelimit.Delayed):
		return c.paint(yellow, "delayed")
	}
	return c.paint(red, "refused")
}

// wait is a time to wait in words, rounded up: whoever waits so long is not
// early.
func wait(d time.Duration) string {
	s := int64((d + time.Second - 1) / time.Second)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 2*3600:
		return fmt.Sprintf("%d min", (s+59)/60)
	}
	return fmt.Sprintf("%d h %d min", (s+59)/3600, (s+59)%3600/60)
}

// owner finds the guard of an activity.
func owner(activity string) (limits.Guard, error) {
	for _, g := range limits.All {
		if _, ok := g.Activity(activity); ok {
			return g, nil
		}
	}
	all := activities()
	if meant, ok := nearest(activity, all); ok {
		return limits.Guard{}, hint{
			error:  &input.ValidationError{Field: "activity", Problem: fmt.Sprintf("is %s, did you mean %q?", input.Show(activity), meant)},
			advice: "see guards limits",
		}
	}
	return limits.Guard{}, input.Invalid("activity", input.Show(activity), "one of "+strings.Join(all, ", "))
}

// activities names every guard's.
func activities() (all []string) {
	for _, g := range limits.All {
		for _, a := range g.Activities {
			all = append(all, a.Name)
		}
	}
	return all
}
