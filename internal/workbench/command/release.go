package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type releaseCommand struct {
	Activity string `arg:"" help:"The activity whose slot to free. One of its limits is a log."`
	ownerFlags
	At   string `placeholder:"TIME" help:"Which slot, if several are open: its time, as guards status shows it, or in Unix milliseconds."`
	JSON bool   `name:"json" help:"Print one JSON document."`
	yesFlag
	tableFlags

	whose string // the key of the user or the subject; validate sets it
}

func (releaseCommand) Help() string {
	return `This frees a slot of a log whose holder is gone. If the holder still works, its next
renewal is told that the slot has expired. Only the log's slot is freed: if the
activity has more limits, or is in a group, the other limits keep their counts.
Examples:
  guards release --user u1 {slotted}
  guards release --user u1 {slotted} --at 2026-01-05T12:00:00.000Z --yes
  guards release --subject {slotsubject}={slotsubject}1 {subjectslotted}`
}

// A released is what the command prints as JSON.
type released struct {
	tableName
	owner
	Activity  string `json:"activity"`
	At        int64  `json:"at"`        // of the slot, in Unix milliseconds
	HeldUntil int64  `json:"heldUntil"` // without this command
	figures          // of the log, afterwards
}

// Run frees one slot, after a question.
func (c *releaseCommand) Run(ctx context.Context, env session) error {
	a, wanted, err := c.validate(env)
	if err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	key := keyOf(c.whose, a, env.now().UnixMilli())
	within, cancel := context.WithTimeout(ctx, patience)
	item, err := c.store.Read(within, key)
	cancel()
	if err != nil {
		return reached(err)
	}
	if attrs := unusable(a, c.whose, a.Limit, item, env.now().UnixMilli()); len(attrs) > 0 {
		return hint{
			fmt.Errorf("the item can't be read: %s has the wrong type", strings.Join(attrs, ", ")),
			"guards reset " + option(c.whose) + " " + c.Activity + " repairs it, and frees all slots",
		}
	}
	s, err := c.choose(slotsOf(a.Limit, env.now().UnixMilli(), item.State), wanted)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Free the slot of %s that %s has taken or renewed at %s, and that is held until %s, in %s?",
		c.Activity, shown(c.whose), instant(s.At), instant(s.HeldUntil), c.where())
	switch {
	case a.Group != "":
		question = "Only a slot of the log is freed: " + groupOf(countedIn(env.guards, a.Group)) + " keeps its other counts. " + question
	case len(a.Limit.Rates()) > 1 || len(a.Subjects) > 0:
		question = "Only a slot of the log is freed: the other limits of " + c.Activity + " keep their counts. " + question
	}
	if err := c.confirm(ctx, env, question, ""); err != nil {
		return err
	}
	state, err := c.free(ctx, env, key, a.Limit, s, item.State)
	if err != nil {
		return err
	}
	return c.print(env, a, s, state)
}

// validate returns the activity with the limit of the user or the subject, and the time of
// --at in Unix milliseconds; 0: none.
func (c *releaseCommand) validate(env session) (a limits.Activity, wanted int64, err error) {
	if _, a, err = env.find(c.Activity); err != nil {
		return a, 0, err
	}
	if c.whose, err = c.keyIn(a); err != nil {
		return a, 0, err
	}
	a.Limit = a.Part(subjectOf(c.whose)).Limit
	if !a.Limit.HasLog() {
		return a, 0, hint{fmt.Errorf("%s has no slots of a %s, because none of those limits is a log", c.Activity, cmp.Or(subjectOf(c.whose), "user")), "guards reset clears an activity"}
	}
	if c.At == "" {
		return a, 0, nil
	}
	t, err := time.Parse(time.RFC3339, c.At)
	if err == nil {
		return a, t.UnixMilli(), nil
	}
	if wanted, err = strconv.ParseInt(c.At, 10, 64); err != nil || wanted < 1 {
		return a, 0, input.Invalid("--at", input.Show(c.At), "a time such as 2026-01-05T12:00:00.000Z, or Unix milliseconds")
	}
	return a, wanted, nil
}

// maxListed is how many times an error lists.
const maxListed = 10

// choose returns the slot that is wanted, or the only one if wanted is 0.
func (c *releaseCommand) choose(slots []slot, wanted int64) (slot, error) {
	if len(slots) == 0 {
		return slot{}, fmt.Errorf("%s has no open slot of %s in %s", shown(c.whose), c.Activity, c.where())
	}
	i := slices.IndexFunc(slots, func(s slot) bool { return s.At == wanted })
	switch {
	case i >= 0:
		return slots[i], nil
	case wanted == 0 && len(slots) == 1:
		return slots[0], nil
	}
	what := "several slots are open: give --at"
	if wanted != 0 {
		what = "no open slot has the time " + instant(wanted) + ", want --at"
	}
	var times []string
	for _, s := range slots[:min(len(slots), maxListed)] {
		times = append(times, instant(s.At))
	}
	if more := len(slots) - len(times); more > 0 {
		times = append(times, fmt.Sprintf("one of %d more", more))
	}
	return slot{}, hint{fmt.Errorf("%s %s", what, strings.Join(times, ", or ")), "guards status " + option(c.whose) + " shows until when each is held"}
}

// errNotOpen means that the slot has changed since the command looked. It also means
// that the slot is too small for an action of the activity, because another one has
// taken it.
var errNotOpen = errors.New("the slot is renewed, released or expired, or another activity of the group has taken it: see guards status")

// free frees one action of a slot, and returns the state of the item after that. The
// update has a guard, as a guard's own has: it holds only if the slot is still the same.
// If other slots have changed in the meantime, free plans again. It leaves the id of the
// check in the item: the id is a hash, so free can't find it. Without its slot, a
// renewal by that id is told that it has expired.
func (c *releaseCommand) free(ctx context.Context, env session, key ratelimit.Key, p policy.Policy, one slot, state policy.State) (policy.State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		now := max(env.now().UnixMilli(), one.At) // another clock can be ahead
		u, ok := p.Free(now, one.At, 1, state)
		if !ok {
			return nil, errNotOpen
		}
		item, done, err := c.store.Update(ctx, ratelimit.Write{Key: key, Update: u, Now: now})
		if err != nil {
			env.note(fmt.Sprintf("the slot may be freed or not; see guards status %s", option(c.whose)))
			return nil, reached(err)
		}
		if done {
			return item.State, nil
		}
		state = item.State
	}
}

// print writes the figures of the log.
func (c *releaseCommand) print(env session, a limits.Activity, s slot, state policy.State) error {
	r := a.Limit.Read(env.now().UnixMilli(), 0, state)
	if i := slices.IndexFunc(a.Limit.Each(), policy.Policy.HasLog); i >= 0 && len(r.Each) > 0 {
		r = r.Each[i]
	}
	f := guard.FiguresOf(r)
	return env.print(c.JSON, released{c.opened, ownerOf(c.whose), c.Activity, s.At, s.HeldUntil, f},
		fmt.Sprintf("%s of %s: %d/%d used, %d left, in %s; the slot of %s is free",
			limitOf(c.Activity, f.Name), shown(c.whose), f.ActivityCount, f.Limit, f.Remaining, c.where(), instant(s.At)))
}
