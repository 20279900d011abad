package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
)

type statsCommand struct {
	Activity string `placeholder:"A" help:"This activity only."`
	JSON     bool   `name:"json" help:"Print one JSON document."`
	tableFlags
}

// Help is the command's own help.
func (statsCommand) Help() string {
	return `It reads the whole table, and pays for that; a terminal shows how far it is.
Examples:
  guards stats
  guards stats --activity create_post --json`
}

// statistics are what the command prints.
type statistics struct {
	TrackedUsers int64           `json:"trackedUsers"`
	Items        int64           `json:"items"`
	Stale        int64           `json:"stale"`
	Activities   []activityUsers `json:"activities"`
}

type activityUsers struct {
	Activity string `json:"activity"`
	Users    int64  `json:"users"`

	// Where one action may be done every so long: that, in milliseconds.
	IntervalMs int64 `json:"intervalMs,omitzero"`
}

// interval is the least time between two actions of an activity; 0 where more
// than one may come at once.
func interval(name string) time.Duration {
	rules, err := owner(name)
	if err != nil {
		return 0 // of a guard that the code has no more
	}
	a, _ := rules.Activity(name)
	if p, ok := a.Limit.(ratelimit.TokenBucket); ok && p.Burst == 1 {
		return p.Interval()
	}
	return 0
}

// Run counts users and items.
func (c *statsCommand) Run(ctx context.Context, con console) error {
	if c.Activity != "" {
		if _, err := owner(c.Activity); err != nil {
			return err
		}
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	found, err := table.New(store.Table()).Stats(ctx, con.now().Unix(), func(s table.Stats, parts int) {
		con.bar(parts, table.Parts, fmt.Sprintf("%s items of %s users", grouped(s.Items), grouped(s.Users)))
	})
	con.told()
	if err != nil {
		return input.NewUnavailable(err)
	}
	s := statistics{found.Users, found.Items, found.Stale, []activityUsers{}}
	for _, name := range slices.Sorted(maps.Keys(found.Activities)) {
		if c.Activity == "" || c.Activity == name {
			s.Activities = append(s.Activities, activityUsers{name, found.Activities[name], interval(name).Milliseconds()})
		}
	}
	if c.JSON {
		return json.NewEncoder(con.out).Encode(s)
	}
	if _, err := fmt.Fprintf(con.out, "%d items of %d users, %d stale\n", s.Items, s.TrackedUsers, s.Stale); err != nil || len(s.Activities) == 0 {
		return err
	}
	var lines strings.Builder
	w := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nACTIVITY\tUSERS\tINTERVAL")
	for _, a := range s.Activities {
		every := ""
		if a.IntervalMs > 0 {
			every = wait(time.Duration(a.IntervalMs) * time.Millisecond)
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\n", a.Activity, a.Users, every)
	}
	return con.printTable(w, &lines)
}
