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

	"github.com/cric-talk/guards/internal/event"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

type statsCommand struct {
	Activity string `placeholder:"A" help:"This activity only."`
	JSON     bool   `name:"json" help:"Print one JSON document."`
	tableFlags
}

// Help is the command's own help.
func (statsCommand) Help() string {
	return `It reads the whole table, and pays for that. Examples:
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
	found, err := store.Stats(ctx, time.Now().Unix(), func(s dynamostore.Stats) {
		con.tell("%d items of %d users so far", s.Items, s.Users)
	})
	con.told()
	if err != nil {
		return event.NewUnavailable(err)
	}
	s := statistics{found.Users, found.Items, found.Stale, []activityUsers{}}
	for _, name := range slices.Sorted(maps.Keys(found.Activities)) {
		if c.Activity == "" || c.Activity == name {
			s.Activities = append(s.Activities, activityUsers{name, found.Activities[name]})
		}
	}
	if c.JSON {
		return json.NewEncoder(con.out).Encode(s)
	}
	if _, err := fmt.Fprintf(con.out, "%d items of %d users, %d stale\n", s.Items, s.TrackedUsers, s.Stale); err != nil || len(s.Activities) == 0 {
		return err
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nACTIVITY\tUSERS")
	for _, a := range s.Activities {
		_, _ = fmt.Fprintf(w, "%s\t%d\n", a.Activity, a.Users)
	}
	return con.printTable(w, &table)
}

// tell shows how far a long work is, on one line of a terminal.
func (c console) tell(format string, args ...any) {
	if c.progress {
		_, _ = fmt.Fprintf(c.err, "\r"+format+" ", args...)
	}
}

// told clears that line.
func (c console) told() {
	if c.progress {
		_, _ = fmt.Fprint(c.err, "\r\x1b[K")
	}
}
