package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type resetCommand struct {
	Activity string `arg:"" help:"The activity to clear: see guards limits."`
	ownerFlags
	yesFlag
	changeFlags

	clears string // what is cleared, for people; Run sets it
	whose  string // the key of the user or the subject; Run sets it
}

func (resetCommand) Help() string {
	return `A reset of an activity in a group clears the whole group of this user. A reset of a
user leaves the counts of subjects, such as those of a room, and one of a subject those
of users. A reset ends a lock, too, and the history tells who made it, but not whose it is.
Examples:
  guards reset --user u1 {activity} --why "he called, and is who he says"
  guards reset --user u1 {activity} --yes --json
  guards reset --subject {subject}={subject}1 {counted}`
}

// Run resets the activity as the guard that owns it does.
func (c *resetCommand) Run(ctx context.Context, env session) error {
	g, a, err := env.find(c.Activity)
	if err == nil {
		c.whose, err = c.keyIn(a)
	}
	if err != nil {
		return err
	}
	counted := countedIn(env.guards, itemOf(a))
	if queues(counted) {
		return hint{
			errors.New(c.Activity + " can't be reset, because its places are given away: jobs wait for them"),
			"guards erase " + option(c.whose) + " deletes everything about the user",
		}
	}
	by := liveedit.Change{By: c.by(), Activity: c.Activity, Why: c.Why}
	if err := by.Validate(); err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	c.clears = c.Activity
	if a.Group != "" {
		c.clears = groupOf(counted)
	}
	if err := c.confirm(ctx, env, fmt.Sprintf("Clear %s of %s in %s?", c.clears, shown(c.whose), c.where()), ""); err != nil {
		return err
	}
	changed, err := env.follow(ctx, c.store.live)
	if _, ok := errors.AsType[*input.Unavailable](err); ok {
		return err
	}
	if err != nil {
		env.note("the figures are those of the code's limit, because the live limits can't be read: " + err.Error())
	}
	// The figures need the limit in force. The guard that resets does not follow
	// the live limits: in mode off, it would reset nothing.
	a.Limit = termsOf(changed.Limits(), a, c.whose, "", env.now()).Limit
	a.Tiers, a.Subjects = nil, nil
	g.Activities = []limits.Activity{a}
	answer, err := c.reset(ctx, env, g)
	if ctx.Err() != nil {
		env.note(fmt.Sprintf("stopped: %s of %s may be cleared or not; see guards status %s", c.clears, shown(c.whose), option(c.whose)))
	}
	if err != nil {
		return err
	}
	c.note(ctx, env, by)
	return c.print(env, &answer)
}

// note adds the reset to the history. An operator who may not do that can still reset.
func (c *resetCommand) note(ctx context.Context, env session, by liveedit.Change) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	by.At = env.now()
	if err := liveedit.Reset(ctx, c.store.live, by, c.whose); err != nil {
		env.note("the reset is done, but the history has no entry about it: " + err.Error())
	}
}

// reset clears the item as the guard does. A guard clears users only, so the item of a
// subject is cleared with the same limiter.
func (c *resetCommand) reset(ctx context.Context, env session, g limits.Guard) (guard.Answer, error) {
	if subjectOf(c.whose) == "" {
		h := &guard.Handler{Guard: g, Limiter: c.store.limiter(env)}
		return decide(ctx, h, guard.Request{UserID: c.whose, Activity: c.Activity, Op: guards.Reset})
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := g.Activities[0]
	d, err := c.store.limiter(env).Decide(ctx, guards.Reset, ratelimit.Request{UserID: c.whose, Activity: a.Name, Group: a.Group, Policy: a.Limit, Count: 1})
	return guard.Answer{Decision: &d}, reached(err)
}

func (c *resetCommand) print(env session, a *guard.Answer) (err error) {
	switch d := a.Decision; {
	case c.JSON && subjectOf(c.whose) != "":
		return env.printLine(struct {
			owner
			Activity string `json:"activity"`
			figures
		}{ownerOf(c.whose), c.Activity, guard.FiguresOf(d.Reading)})
	case c.JSON:
		_, err = env.out.Write(append(a.JSON(), '\n'))
	case d == nil:
		_, err = fmt.Fprintf(env.out, "%s is %s: nothing is counted\n", c.Activity, a.Reason)
	default:
		where := c.where()
		if c.clears != c.Activity {
			where += "; " + c.clears + " is cleared"
		}
		_, err = fmt.Fprintf(env.out, "%s of %s: %d/%d used, %d left, in %s\n", c.Activity, shown(c.whose), d.Used, d.Limit, d.Remaining, where)
	}
	return err
}

type eraseCommand struct {
	ownerFlags
	KeepBlocks bool `help:"Leave the user or the subject blocked. The id stays in the table until the blocks end."`
	sweepFlags
}

func (eraseCommand) Help() string {
	return `This deletes all items of the user or the subject, expired or not, takes back their
grants and lifts their blocks. An erasure of a user leaves the items of subjects. If a person's own id is also
a subject, such as a phone number that gets messages, erase both. Examples:
  guards erase --user u1 --dry-run
  guards erase --user u1 --yes
  guards erase --subject {subject}={subject}1`
}

// Run erases a user or a subject as the function cleanup does.
func (c *eraseCommand) Run(ctx context.Context, env session) error {
	key, err := c.key() // also of a subject that the code no longer has
	if err != nil {
		return err
	}
	what := "everything about " + shown(key) + ": items, grants and blocks"
	if c.KeepBlocks {
		what = "the items and the grants of " + shown(key)
	}
	var places []string // of users: no subject has any
	for _, a := range env.guards.All {
		if subjectOf(key) == "" && a.Limit.Queues() {
			places = append(places, a.Name)
		}
	}
	if len(places) > 0 {
		what += ", with the places that " + strings.Join(places, " and ") + " gave, which are then given again,"
	}
	return c.clean(ctx, env, what, key, c.KeepBlocks)
}
