package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/wiring"
	"github.com/cric-talk/guards/internal/workbench/words"
)

type checkCommand struct {
	Activity string   `arg:"" help:"What the user does: see guards limits."`
	User     string   `required:"" placeholder:"ID" help:"The user who is limited."`
	Subject  subjects `placeholder:"NAME=ID" help:"A subject of the activity, such as room=r42. Can be repeated."`
	Limit    numbers  `placeholder:"NUMBER" help:"The number for a limit with a max: of the user's only limit, or NAME=NUMBER, such as tenant=500. Can be repeated."`
	Count    int64    `default:"1" placeholder:"N" help:"How many actions at once (${default})."`
	Partial  bool     `help:"Grant as many of --count as fit, instead of all or nothing."`
	Times    int      `default:"1" placeholder:"N" help:"Ask N times in a row (${default})."`
	Tier     string   `placeholder:"T" help:"The user's plan."`
	Role     []string `placeholder:"R" help:"A role of the user. Can be repeated."`
	JSON     bool     `name:"json" help:"Print each answer as one line of JSON."`
	storeFlags
}

func (checkCommand) Help() string {
	return `Examples:
  guards check {activity} --user u1 --times 12
  guards check {counted} --user u1 {subjects}
  guards check {activity} --user u1 --store dynamodb --table rateLimit --json`
}

// Run asks the guard. It returns errRefused if any request was refused.
func (c *checkCommand) Run(ctx context.Context, env session) error {
	h, err := c.handler(ctx, env)
	if err != nil {
		return err
	}
	c.explainLive(env, h)
	env.warnOfTier(c.Tier, h.Live.Limits())
	var last error
	for i := range c.Times {
		if ctx.Err() != nil {
			return c.stopped(env, i)
		}
		a, err := decide(ctx, h, guard.Request{
			UserID: c.User, Activity: c.Activity, Op: guards.Check,
			Count: c.Count, Partial: c.Partial, Limit: guards.Numbers(c.Limit), Tier: c.Tier, Roles: c.Role, Subjects: c.Subject,
		})
		if err != nil && ctx.Err() != nil {
			return c.stopped(env, i)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			_, err = env.out.Write(append(a.JSON(), '\n'))
		} else {
			_, err = fmt.Fprintln(env.out, c.line(env, i+1, &a))
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

// stopped notes how many requests were answered before Ctrl-C.
func (c *checkCommand) stopped(env session, answered int) error {
	env.note(fmt.Sprintf("stopped after %d of %s", answered, plural(int64(c.Times), "request")))
	return errInterrupted
}

func (c *checkCommand) handler(ctx context.Context, env session) (*guard.Handler, error) {
	if c.Times < 1 {
		return nil, input.Invalid("--times", fmt.Sprint(c.Times), "at least 1")
	}
	if c.Count < 1 {
		return nil, input.Invalid("--count", fmt.Sprint(c.Count), "at least 1")
	}
	g, a, err := env.find(c.Activity)
	if err == nil {
		err = c.Subject.of(a)
	}
	if err != nil {
		return nil, err
	}
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	changed, err := env.follow(ctx, c.store.live)
	if err != nil {
		return nil, err
	}
	return &guard.Handler{Guard: g, Limiter: c.store.limiter(env), Live: changed, BypassRoles: wiring.Function.BypassRoles()}, nil
}

// explainLive notes which live limit, mode or grant decides about the user, and about
// each subject. It is not a part of the guard's answer.
func (c *checkCommand) explainLive(env session, h *guard.Handler) {
	a, _ := h.Guard.Activity(c.Activity)
	keys := []string{c.User}
	for _, name := range slices.Sorted(maps.Keys(c.Subject)) {
		keys = append(keys, limits.SubjectID(name, c.Subject[name]))
	}
	for _, key := range keys {
		if ruling := rulingOf(termsOf(h.Live.Limits(), a, key, c.Tier, env.now())); ruling != nil {
			env.note(fmt.Sprintf("%s of %s is decided by: %s; see guards limits --live", c.Activity, shown(key), ruling))
		}
	}
}

// line returns the nth answer for people. The lines of one command are aligned.
func (c *checkCommand) line(env session, n int, a *guard.Answer) string {
	width := len(fmt.Sprint(c.Times))
	d := a.Decision
	if d == nil {
		return fmt.Sprintf("%*d  %s  %s", width, n, env.paint(green, "allowed"), a.Reason)
	}
	if d.Reason == ratelimit.Blocked {
		return fmt.Sprintf("%*d  %s  %s", width, n, env.verdict(a.Allowed, a.Reason), blockedLine(a))
	}
	if d.Limit == 0 { // a number of --limit decided, and nobody looked at what is counted
		return fmt.Sprintf("%*d  %s  the number for %s is too low for the request  %s", width, n, env.verdict(a.Allowed, a.Reason), cmp.Or(d.LimitedBy, "this limit"), a.Message)
	}
	var b strings.Builder
	digits := len(fmt.Sprint(d.Limit))
	fmt.Fprintf(&b, "%*d  %s  %*d/%d used", width, n, env.verdict(a.Allowed, a.Reason), digits, d.Used, d.Limit)
	if a.Allowed {
		fmt.Fprintf(&b, ", %*d left", digits, d.Remaining)
	}
	switch {
	case a.Reason == ratelimit.Shadow:
		b.WriteString(", over the limit, but the mode is shadow")
	case a.Allowed && a.Granted < a.Count:
		fmt.Fprintf(&b, ", %d of %d granted", a.Granted, a.Count)
	}
	if len(c.Subject) > 0 && d.LimitedBy != "" {
		b.WriteString(" of " + d.LimitedBy)
	}
	b.WriteString(words.Reached(d.Crossed, d.Locked))
	if d.ReadyAt != 0 {
		fmt.Fprintf(&b, "  ready at %s UTC (wait %s), place %d", time.UnixMilli(d.ReadyAt).UTC().Format(time.TimeOnly), wait(d.Wait), d.Waiting)
	} else if a.Message != "" {
		fmt.Fprintf(&b, "  %s (wait %s)", a.Message, wait(d.Wait))
	}
	return b.String()
}

// blockedLine returns what a block decided, for people.
func blockedLine(a *guard.Answer) string {
	until := "blocked until " + time.UnixMilli(a.Decision.ResetAt).UTC().Format(time.RFC3339)
	if a.Decision.LimitedBy != "" {
		until = a.Decision.LimitedBy + " " + until
	}
	if a.Allowed {
		return until + ", but the mode is shadow"
	}
	return until + "  " + a.Message
}
