package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type statusCommand struct {
	ownerFlags
	Tier  string  `placeholder:"T" help:"The plan of the user or the caller."`
	Limit numbers `placeholder:"NUMBER" help:"The number that the caller gives for a limit with a max: for each activity with a single limit of the user, or NAME=NUMBER. Can be repeated."`
	JSON  bool    `name:"json" help:"Print one JSON document."`
	tableFlags
}

func (statusCommand) Help() string {
	return `Slots are actions of a log, which count until they are released, or for one window.
Instances can hold some of what is used of a prepaid limit; the table does not tell how much.
Such a count is marked, with --json as "prepaid": true.
The figures are by the number of a limit's text. The table does not tell what number callers
give where a limit has a max; --limit shows the figures by another one. With --json, such a
row has "max": true.
Examples:
  guards status --user u1
  guards status --user u1 --tier premium --json
  guards status --subject {subject}={subject}1`
}

// A standing is what a user has done and has left of one activity, or what was done and is
// left for a subject.
type standing struct {
	Function string    `json:"function"`
	Activity string    `json:"activity"`
	Group    string    `json:"group,omitzero"`   // in whose item the activity counts
	Prepaid  bool      `json:"prepaid,omitzero"` // the item counts what instances hold, too, see leases
	Max      bool      `json:"max,omitzero"`     // the figures are by the text's number, and a caller can give another
	figures            // of the limit that restricts most
	Limits   []figures `json:"limits,omitempty"` // each limit, if the activity has several
	Slots    []slot    `json:"slots,omitempty"`  // the open slots of a log, the oldest first
	Live     *ruling   `json:"live,omitzero"`    // what operators changed; nil: nothing

	Unreadable []string `json:"unreadable,omitempty"` // attributes of the wrong type; the figures mean nothing
}

// Run reads all items of a user or a subject at once. It shows each activity with a limit.
func (c *statusCommand) Run(ctx context.Context, env session) error {
	key, err := c.keyInOne(env.guards)
	if err == nil {
		err = c.Limit.check(env.guards, subjectOf(key))
	}
	if err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	items, err := c.store.dynamo.User(ctx, key)
	if err != nil {
		return input.NewUnavailable(err)
	}
	changed, err := env.follow(ctx, c.store.live)
	if err != nil {
		return err
	}
	var lines []string
	for k, item := range items {
		if u, ok := unreadOf(env.guards, k, item, env.now()); ok {
			lines = append(lines, u.String())
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		env.note(line)
	}
	env.warnOfTier(c.Tier, changed.Limits())
	list := standings(env.guards, key, c.Tier, c.Limit, items, changed.Limits(), env.now())
	blocks := blocksOf(live.Blocks{All: changed.Limits().BlocksOf(key)}, env.now())
	if c.JSON {
		return env.printJSON(struct {
			tableName
			owner
			Activities []standing `json:"activities"`
			Blocks     []blocked  `json:"blocks,omitempty"`
		}{c.opened, ownerOf(key), list, blocks})
	}
	t := statusTable(list)
	if len(blocks) > 0 {
		t.row()
		t.blocks(blocks)
	}
	return t.below(env, shown(key)+" in "+c.where()+":")
}

// statusTable returns the table for people. It has a column about live limits
// only if one of them decides.
func statusTable(list []standing) (t textTable) {
	head := []string{"ACTIVITY", "USED", "LEFT", "WAIT"}
	if slices.ContainsFunc(list, func(s standing) bool { return s.Live != nil }) {
		head = append(head, "DECIDED BY")
	}
	t.head(head...)
	t.needs(head...)
	for _, s := range list {
		each := s.Limits
		if len(each) == 0 {
			each = []figures{s.figures}
		}
		for _, f := range each {
			if len(s.Unreadable) > 0 { // the figures mean nothing
				t.row(limitOf(s.Activity, f.Name), "unreadable", "", "", s.Live.String())
				continue
			}
			t.row(limitOf(s.Activity, f.Name), used(f.ActivityCount, f.Limit, s.Prepaid), fmt.Sprint(f.Remaining), waitMs(f.WaitTime), s.Live.String())
		}
	}
	if slices.ContainsFunc(list, func(s standing) bool { return len(s.Slots) > 0 }) {
		t.row()
		t.head("SLOTS OF", "COUNT", "AT", "HELD UNTIL")
	}
	for _, s := range list {
		for i, one := range s.Slots {
			if i == maxSlots {
				t.row(fmt.Sprintf("and %d more of %s: see --json", len(s.Slots)-i, s.Activity))
				break
			}
			t.row(s.Activity, fmt.Sprint(one.Count), instant(one.At), instant(one.HeldUntil))
		}
	}
	t.explain(slices.ContainsFunc(list, func(s standing) bool { return s.Prepaid }), countsLeases)
	t.explain(slices.ContainsFunc(list, func(s standing) bool { return s.Max }), byText)
	return t
}

// maxSlots is how many slots of a log a table shows.
const maxSlots = 10

// standings returns where the user or the subject with this key stands by the limits as
// operators have changed them.
func standings(guards limits.Guards, key, tier string, given numbers, items map[ratelimit.Key]ratelimit.Item, changed *live.Limits, at time.Time) []standing {
	list := []standing{}
	now := at.UnixMilli()
	for g, a := range guards.All {
		t := termsOf(changed, a, key, tier, at)
		if t.Limit.IsZero() || !a.Has(subjectOf(key)) {
			continue
		}
		item := items[keyOf(key, a, now)]
		p := given.termsOf(changed, a, key, tier, at).Limit
		f := p.Read(now, 1, item.State)
		if _, low := p.TooLow(1); low { // nothing is allowed
			f = policy.Reading{Used: f.Used}
		}
		s := standing{Function: g.Name, Activity: a.Name, Group: a.Group, figures: guard.FiguresOf(f), Live: rulingOf(t), Unreadable: unusable(a, key, t.Limit, item, now)}
		s.Prepaid = leases(guards, changed, a, key, tier, at)
		s.Max = t.Tier == "" && len(given) == 0 && a.WithMax(subjectOf(key)) != nil
		s.Slots = slotsOf(t.Limit, now, item.State)
		for _, one := range f.Each {
			s.Limits = append(s.Limits, guard.FiguresOf(one))
		}
		list = append(list, s)
	}
	return list
}
