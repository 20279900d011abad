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

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
)

type diffCommand struct {
	JSON bool `name:"json" help:"Print one JSON document."`
	tableFlags
}

// Help is the command's own help.
func (diffCommand) Help() string {
	return `Examples:
  guards limits diff
  guards limits diff --json`
}

// A difference is what is changed of an activity or of one of its tiers.
type difference struct {
	Activity string `json:"activity"`
	Tier     string `json:"tier,omitzero"`
	Code     string `json:"code,omitzero"` // empty: the code has it no more
	Live     string `json:"live"`
	Mode     string `json:"mode,omitzero"`
}

// Run compares.
func (c *diffCommand) Run(ctx context.Context, con console) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, version, err := live.Read(ctx, dynamolive.New(store.Table()))
	if err != nil {
		return reached(err)
	}
	list := differences(s)
	if c.JSON {
		return json.NewEncoder(con.out).Encode(map[string]any{"version": version, "limits": list, "grants": append([]live.Grant{}, s.Grants...)})
	}
	if len(list) == 0 && len(s.Grants) == 0 {
		_, err := fmt.Fprintln(con.out, "nothing is changed against the code")
		return err
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if len(list) > 0 {
		_, _ = fmt.Fprintln(w, "ACTIVITY\tTIER\tCODE\tLIVE\tMODE")
	}
	for _, d := range list {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.Activity, d.Tier, d.Code, d.Live, d.Mode)
	}
	for i, g := range s.Grants {
		if i == 0 {
			_, _ = fmt.Fprintln(w, "USER\tROLE\tTIER\tUNTIL\tREASON")
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", g.UserID, g.Role, g.Tier, g.Until.Format(time.RFC3339), g.Reason)
	}
	return con.printTable(w, &text)
}

func differences(s live.Settings) []difference {
	list := []difference{}
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		o := s.Activities[name]
		code := func(tier string) string {
			rules, err := owner(name)
			if err != nil {
				return ""
			}
			a, _ := rules.Activity(name)
			if a.Unlimited {
				return "unlimited"
			}
			return live.Rates(a.For(tier))
		}
		if o.Limit != "" || o.Mode != "" {
			d := difference{Activity: name, Code: code(""), Live: o.Limit, Mode: o.Mode}
			if d.Live == "" {
				d.Live = d.Code
			}
			list = append(list, d)
		}
		for _, tier := range slices.Sorted(maps.Keys(o.Tiers)) {
			list = append(list, difference{Activity: name, Tier: tier, Code: code(tier), Live: o.Tiers[tier]})
		}
	}
	return list
}

type historyCommand struct {
	JSON bool `name:"json" help:"Print one JSON array."`
	tableFlags
}

// Help is the command's own help.
func (historyCommand) Help() string {
	return `Examples:
  guards limits history
  guards limits history --json`
}

// Run lists all changes, the last one first.
func (c *historyCommand) Run(ctx context.Context, con console) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	changes, err := dynamolive.New(store.Table()).SettingsHistory(ctx)
	if err != nil {
		return reached(err)
	}
	if c.JSON {
		return con.printJSON(append([]live.Change{}, changes...))
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "VERSION\tAT\tBY\tWHAT\tWHY")
	for _, h := range changes {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", h.Version, h.At.UTC().Format(time.RFC3339), h.By, h.What, h.Why)
	}
	return con.printTable(w, &text)
}
