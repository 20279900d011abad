package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type limitsCommand struct {
	List    listCommand    `cmd:"" default:"withargs" help:"List every guard's activities and their limits, from the code itself."`
	Set     setCommand     `cmd:"" help:"Change an activity's limit or mode without a deploy."`
	Unset   unsetCommand   `cmd:"" help:"Take back what was changed of an activity."`
	Diff    diffCommand    `cmd:"" help:"What is changed against the code, and what is granted."`
	History historyCommand `cmd:"" help:"Who changed what, when and why."`
}

// Help is the command's own help.
func (limitsCommand) Help() string {
	return `Examples:
  guards limits
  guards limits set create_post 20/1m --why "a launch"
  guards limits diff`
}

type listCommand struct {
	JSON     bool `name:"json" help:"Print one JSON array." xor:"form"`
	Markdown bool `help:"Print a table for a README." xor:"form"`
}

// Help is the command's own help.
func (listCommand) Help() string {
	return `Examples:
  guards limits
  guards limits --json
  guards limits --markdown`
}

// A listed is one activity of the list.
type listed struct {
	Function string            `json:"function"`
	Activity string            `json:"activity"`
	Policy   string            `json:"policy"` // in words
	Limit    int64             `json:"limit,omitzero"`
	WindowMs int64             `json:"windowMs,omitzero"`
	Tiers    map[string]string `json:"tiers,omitempty"` // their policies, in words
}

// tiers are the tiers in words.
func (l listed) tiers() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(l.Tiers)) {
		words = append(words, name+": "+l.Tiers[name])
	}
	return strings.Join(words, "; ")
}

// Run lists the limits.
func (c *listCommand) Run(con console) error {
	list := list()
	switch {
	case c.JSON:
		return con.printJSON(list)
	case c.Markdown:
		_, err := io.WriteString(con.out, markdown(list))
		return err
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "FUNCTION\tACTIVITY\tLIMIT\tTIERS")
	for _, l := range list {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Function, l.Activity, l.Policy, l.tiers())
	}
	return con.printTable(w, &table)
}

// markdown is the list as a table, a row for activities that are limited alike.
func markdown(list []listed) string {
	var b strings.Builder
	b.WriteString("| function | activity | limit | tiers |\n|---|---|---|---|\n")
	for len(list) > 0 {
		first, alike := list[0], []string{}
		for len(list) > 0 && list[0].Function == first.Function && list[0].Policy == first.Policy && list[0].tiers() == first.tiers() {
			alike = append(alike, "`"+list[0].Activity+"`")
			list = list[1:]
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", first.Function, strings.Join(alike, ", "), first.Policy, first.tiers())
	}
	return b.String()
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
					l.Tiers = make(map[string]string)
				}
				l.Tiers[tier] = p.String()
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
