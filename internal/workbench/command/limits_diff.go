package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

type diffCommand struct {
	JSON bool `name:"json" help:"Print one JSON document."`
	tableFlags
}

// Help returns the text below the command's flags.
func (diffCommand) Help() string {
	return `Examples:
  guards limits diff
  guards limits diff --json`
}

// A difference is a changed limit or mode of an activity or of one of its
// tiers.
type difference struct {
	Activity string `json:"activity"`
	Tier     string `json:"tier,omitzero"`
	Code     string `json:"code,omitzero"` // empty: the code does not have the activity
	Live     string `json:"live"`
	Mode     string `json:"mode,omitzero"`
}

// Run compares the live limits with the code's.
func (c *diffCommand) Run(ctx context.Context, con console) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, version, err := live.Read(ctx, store.live)
	if err != nil {
		return reached(err)
	}
	list := differences(con.guards, s)
	grants := slices.DeleteFunc(append([]live.Grant{}, s.Grants...), func(g live.Grant) bool { return ended(g, con.now()) })
	if c.JSON {
		return con.printLine(map[string]any{"version": version, "limits": list, "grants": grants})
	}
	if len(list) == 0 && len(grants) == 0 {
		_, err := fmt.Fprintln(con.out, "nothing differs from the code")
		return err
	}
	var t textTable
	if len(list) > 0 {
		t.row("ACTIVITY", "TIER", "CODE", "LIVE", "MODE")
	}
	for _, d := range list {
		t.row(d.Activity, d.Tier, d.Code, d.Live, d.Mode)
	}
	if len(grants) > 0 {
		t.row("USER", "ROLE", "TIER", "UNTIL", "REASON")
	}
	for _, g := range grants {
		t.row(g.UserID, g.Role, g.Tier, g.Until.Format(time.RFC3339), g.Reason)
	}
	return t.write(con.out, con.width)
}

// differences returns what s changes, in the order of the activities' names.
func differences(guards limits.Guards, s live.Settings) []difference {
	list := []difference{}
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		o := s.Activities[name]
		if o.Limit != "" || o.Mode != "" {
			d := difference{Activity: name, Code: inCodeOf(guards, name, ""), Live: o.Limit, Mode: o.Mode}
			if d.Live == "" {
				d.Live = d.Code
			}
			list = append(list, d)
		}
		for _, tier := range slices.Sorted(maps.Keys(o.Tiers)) {
			list = append(list, difference{Activity: name, Tier: tier, Code: inCodeOf(guards, name, tier), Live: o.Tiers[tier]})
		}
	}
	return list
}

// inCodeOf returns the code's limit of an activity for callers of a tier. It
// returns an empty text if the code does not have the activity.
func inCodeOf(guards limits.Guards, name, tier string) string {
	_, a, _ := guards.Activity(name) // without the activity, a has no limit
	return inCode(a, tier)
}
