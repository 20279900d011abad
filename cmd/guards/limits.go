package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type limitsCommand struct {
	JSON bool `name:"json" help:"Print one JSON array."`
}

// Help is the command's own help.
func (limitsCommand) Help() string {
	return `Examples:
  guards limits
  guards limits --json`
}

// A listed is one activity of the list.
type listed struct {
	Function string           `json:"function"`
	Activity string           `json:"activity"`
	Policy   string           `json:"policy"` // in words
	Limit    int64            `json:"limit,omitzero"`
	WindowMs int64            `json:"windowMs,omitzero"`
	Tiers    map[string]int64 `json:"tiers,omitempty"` // their limits
}

// Run lists the limits.
func (c *limitsCommand) Run(con console) error {
	list := list()
	if c.JSON {
		return con.printJSON(list)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "FUNCTION\tACTIVITY\tLIMIT\tTIERS")
	for _, l := range list {
		var tiers []string
		for _, name := range slices.Sorted(maps.Keys(l.Tiers)) {
			tiers = append(tiers, fmt.Sprintf("%s %d", name, l.Tiers[name]))
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Function, l.Activity, l.Policy, strings.Join(tiers, ", "))
	}
	return con.printTable(w, &table)
}

// printJSON writes a document for people to read, too.
func (c console) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printTable writes what w has put into table, without the blanks that
// tabwriter fills up the last column with.
func (c console) printTable(w *tabwriter.Writer, table *strings.Builder) error {
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(c.out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func list() (all []listed) {
	for _, g := range limits.All {
		for _, a := range g.Activities {
			l := listed{Function: g.Name, Activity: a.Name, Policy: "unlimited"}
			if !a.Unlimited {
				l.Policy = a.Limit.String()
				l.Limit, l.WindowMs = quota(a.Limit)
			}
			for tier, p := range a.Tiers {
				if l.Tiers == nil {
					l.Tiers = make(map[string]int64)
				}
				l.Tiers[tier], _ = quota(p)
			}
			all = append(all, l)
		}
	}
	return all
}

func quota(p ratelimit.Policy) (limit, windowMs int64) {
	limit, window := p.Quota()
	return limit, window.Milliseconds()
}
