package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

type listCommand struct {
	JSON     bool `name:"json" help:"Print one JSON array." xor:"form"`
	Markdown bool `help:"Print a table for a document." xor:"form"`
}

// Help returns the text below the command's flags.
func (listCommand) Help() string {
	return `Examples:
  guards limits
  guards limits --json
  guards limits --markdown`
}

// A listed is one activity of the list.
type listed struct {
	Function string       `json:"function"`
	Activity string       `json:"activity"`
	Policy   string       `json:"policy"` // the limit's text form, or "unlimited"
	Limit    int64        `json:"limit,omitzero"`
	WindowMs int64        `json:"windowMs,omitzero"`
	Tiers    limits.Tiers `json:"tiers,omitempty"`
}

// Run lists the limits.
func (c *listCommand) Run(con console) error {
	all := list()
	switch {
	case c.JSON:
		return con.printJSON(all)
	case c.Markdown:
		_, err := io.WriteString(con.out, markdown(all))
		return err
	}
	var t textTable
	t.row("FUNCTION", "ACTIVITY", "LIMIT", "TIERS")
	for _, l := range all {
		t.row(l.Function, l.Activity, l.Policy, l.tiers(""))
	}
	return t.write(con.out)
}

// list returns the activities of all guards.
func list() (all []listed) {
	for _, g := range limits.All {
		for _, a := range g.Activities {
			l := listed{Function: g.Name, Activity: a.Name, Policy: "unlimited", Tiers: a.Tiers}
			if !a.Unlimited {
				figures := a.Limit.Read(0, 0, nil)
				l.Policy, l.Limit, l.WindowMs = a.Limit.String(), figures.Limit, figures.Window.Milliseconds()
			}
			all = append(all, l)
		}
	}
	return all
}

// tiers returns the limits of the tiers, with quote around each limit.
func (l listed) tiers(quote string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l.Tiers)) {
		all = append(all, name+": "+quote+l.Tiers[name].String()+quote)
	}
	return strings.Join(all, "; ")
}

// limit returns the limit as Markdown.
func (l listed) limit() string {
	if l.Limit == 0 {
		return l.Policy
	}
	return "`" + l.Policy + "`"
}

// markdown returns the list as a table. Activities of one function that have
// the same limits share a row.
func markdown(list []listed) string {
	var b strings.Builder
	b.WriteString("| function | activity | limit | tiers |\n|---|---|---|---|\n")
	for len(list) > 0 {
		first, alike := list[0], []string{}
		for len(list) > 0 && list[0].Function == first.Function && list[0].Policy == first.Policy && maps.EqualFunc(list[0].Tiers, first.Tiers, policy.Policy.Equal) {
			alike = append(alike, "`"+list[0].Activity+"`")
			list = list[1:]
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", first.Function, strings.Join(alike, ", "), first.limit(), first.tiers("`"))
	}
	return b.String()
}
