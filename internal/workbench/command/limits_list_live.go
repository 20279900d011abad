package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// A listedLive is the limit in force of an activity, or of one of its tiers,
// beside the code's.
type listedLive struct {
	Function string `json:"function"`
	Activity string `json:"activity"`
	Tier     string `json:"tier,omitzero"`
	Code     string `json:"code"`          // empty: the code does not have the tier
	Limit    string `json:"limit"`         // in force
	Set      stamp  `json:"set,omitzero"`  // of a limit that operators set
	Mode     string `json:"mode,omitzero"` // empty: the mode with which the function is deployed
	ModeSet  stamp  `json:"modeSet,omitzero"`
}

// live prints the limits in force.
func (c *listCommand) live(ctx context.Context, con console) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, _, err := live.Read(ctx, store.live)
	if err != nil {
		return reached(err)
	}
	history, err := store.live.SettingsHistory(ctx)
	if err != nil {
		return reached(err)
	}
	changed, err := con.follow(ctx, store.live)
	if err != nil {
		return err
	}
	list := listLive(con.guards, s, changed.Limits(), history)
	for _, err := range s.Problems(con.guards) {
		con.note(fmt.Sprintf("%v. This can't be applied, so new instances follow the code: see guards limits diff", err))
	}
	grants := grantsIn(s, history, con.now())
	if c.JSON {
		return con.printLine(map[string]any{"table": c.table, "region": c.region, "limits": list, "grants": grants})
	}
	if _, err := fmt.Fprintf(con.out, "in force in %s:\n", c.where()); err != nil {
		return err
	}
	return tableOf(list, grants).write(con.out, con.width)
}

// listLive returns the limits of all activities and of their tiers.
func listLive(guards limits.Guards, s live.Settings, changed *live.Limits, history []live.Change) (list []listedLive) {
	for _, g := range guards {
		for _, code := range g.Activities {
			now, mode := changed.Activity(code)
			l := listedLive{Function: g.Name, Activity: code.Name, Code: inCode(code, ""), Limit: inCode(now, ""), Mode: mode}
			if o := s.Activities[code.Name]; o.Limit != "" {
				l.Set = limitStamp(history, code.Name, "", o.Limit)
			}
			if mode != "" {
				l.ModeSet = modeStamp(history, code.Name, mode)
			}
			list = append(list, l)
			for _, tier := range slices.Sorted(maps.Keys(now.Tiers)) {
				l := listedLive{Function: g.Name, Activity: code.Name, Tier: tier, Limit: inCode(now, tier), Mode: mode}
				if _, ok := code.Tiers[tier]; ok {
					l.Code = inCode(code, tier)
				}
				if text, ok := s.Activities[code.Name].Tiers[tier]; ok {
					l.Set = limitStamp(history, code.Name, tier, text)
				}
				list = append(list, l)
			}
		}
	}
	return list
}

// tableOf returns the limits and the grants for people. If a limit and its mode
// were set by two changes, each has a row: the first one tells who set the limit.
func tableOf(list []listedLive, grants []grantedTo) (t textTable) {
	t.row("ACTIVITY", "TIER", "CODE", "IN FORCE", "MODE", "SINCE", "BY")
	for _, l := range list {
		row := func(code, limit string, by stamp) {
			t.row(append([]string{l.Activity, l.Tier, code, limit, l.Mode}, by.cells()...)...)
		}
		row(l.Code, l.Limit, cmp.Or(l.Set, l.ModeSet))
		if by := cmp.Or(l.ModeSet, l.Set); by != cmp.Or(l.Set, l.ModeSet) {
			row("", "", by)
		}
	}
	if len(grants) > 0 {
		t.row()
		t.row("USER", "ROLE", "TIER", "UNTIL", "SINCE", "BY", "REASON")
	}
	for _, g := range grants {
		t.row(append(append([]string{g.UserID, g.Role, g.Tier, g.Until.Format(time.RFC3339)}, g.cells()...), g.Reason)...)
	}
	return t
}
