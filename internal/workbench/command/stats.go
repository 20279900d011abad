package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/table"
)

type statsCommand struct {
	Activity string `placeholder:"A" help:"List only this activity, or the group that it counts in. The totals are still for the whole table."`
	JSON     bool   `name:"json" help:"Print one JSON document."`
	tableFlags
}

func (statsCommand) Help() string {
	return `This reads the whole table, which costs read capacity. A terminal shows the progress.
Stale items have expired: guards cleanup deletes the same number. Cleanup also reads
the items of the live limits, which stats does not count. INTERVAL is the time
between two actions that a bucket without a burst allows, by the code's limit.
Activities of a group share an item, so they share a row: that of the group. Subjects,
such as rooms, have items of their own, and are counted by name. The table does not tell
what came from leases of a prepaid limit: that is in the metrics Leased and Visits. An activity
is marked if its users or a subject have such a limit in the code. Items that can't be read
are listed, with what helps.
Examples:
  guards stats
  guards stats --activity {activity} --json`
}

// statistics are the figures that the command prints.
type statistics struct {
	tableName
	TrackedUsers int64           `json:"trackedUsers"` // without subjects
	Subjects     table.Subjects  `json:"subjects,omitempty"`
	Items        int64           `json:"items"`
	Stale        int64           `json:"stale"`
	Activities   []activityUsers `json:"activities"`
	Unreadable   unreadItems     `json:"unreadable,omitempty"`
}

type activityUsers struct {
	Activity   string   `json:"activity"`        // or a group
	Group      []string `json:"group,omitempty"` // the activities of the group
	Users      int64    `json:"users"`
	IntervalMs int64    `json:"intervalMs,omitzero"` // the least time between two actions; 0: two can come at once
	Prepaid    bool     `json:"prepaid,omitzero"`    // a limit of users or of a subject is prepaid in the code
}

func (c *statsCommand) Run(ctx context.Context, env session) error {
	only := ""
	if c.Activity != "" {
		_, a, err := env.find(c.Activity)
		if err != nil {
			return err
		}
		only = itemOf(a)
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	var unreadable unreadItems
	found, err := c.store.dynamo.Stats(ctx, env.now().Unix(), unreadable.each(env), func(s table.Stats, parts int) {
		env.bar(parts, table.Parts, fmt.Sprintf("%s items of %s users", grouped(s.Items), grouped(s.Users)))
	})
	env.clearLine()
	if err != nil && ctx.Err() == nil {
		return input.NewUnavailable(err)
	}
	if ctx.Err() != nil {
		env.note("stopped before the end: the figures are those of the items that were read")
	}
	s := statistics{c.opened, found.Users, found.Subjects, found.Items, found.Stale, []activityUsers{}, unreadable}
	for _, name := range slices.Sorted(maps.Keys(found.Activities)) {
		if only == "" || only == name {
			s.Activities = append(s.Activities, usersOf(env.guards, name, found.Activities[name]))
		}
	}
	if c.JSON {
		err = env.printLine(s)
	} else {
		err = s.print(env, c.where())
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// usersOf returns the row of the items with this name, which so many users have.
func usersOf(guards limits.Guards, name string, users int64) activityUsers {
	all := countedIn(guards, name)
	row := activityUsers{Activity: name, Users: users, IntervalMs: interval(guards, name).Milliseconds(), Prepaid: slices.ContainsFunc(all, prepaid)}
	if len(all) > 0 && all[0].Group != "" {
		row.Group = namesOf(all)
	}
	return row
}

// interval returns the least time between two actions; 0: two can come at once.
func interval(guards limits.Guards, name string) time.Duration {
	_, a, _ := guards.Activity(name) // without an activity in the code, a has no limit
	var least time.Duration
	for _, r := range a.Limit.Rates() {
		if r.Burst == 1 {
			least = max(least, r.Window/time.Duration(max(1, r.Actions())))
		}
	}
	return least
}

// inMetrics tells where the figures are that the table does not have.
const inMetrics = "prepaid: the metric Leased counts checks that were admitted from a lease, and Visits those that took one"

// print writes the figures for people. Where names the table.
func (s statistics) print(env session, where string) error {
	var t textTable
	if len(s.Activities) > 0 {
		t.row()
		t.head("ACTIVITY", "USERS", "INTERVAL", "")
	}
	for _, a := range s.Activities {
		name := a.Activity
		if len(a.Group) > 0 {
			name += " (" + strings.Join(a.Group, ", ") + ")"
		}
		mark := ""
		if a.Prepaid {
			mark = "prepaid"
		}
		t.row(name, fmt.Sprint(a.Users), waitMs(a.IntervalMs), mark)
	}
	if len(s.Subjects) > 0 {
		t.row()
		t.head("SUBJECT", "COUNT")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Subjects)) {
		t.row(name, fmt.Sprint(s.Subjects[name]))
	}
	t.unreadable(s.Unreadable)
	t.explain(slices.ContainsFunc(s.Activities, func(a activityUsers) bool { return a.Prepaid }), inMetrics)
	return t.below(env, fmt.Sprintf("%s of %s, %s stale, in %s", plural(s.Items, "item"), owners(s.TrackedUsers, s.Subjects), grouped(s.Stale), where))
}
