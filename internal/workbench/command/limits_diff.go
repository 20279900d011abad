package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/liveedit"
)

type diffCommand struct {
	JSON bool `name:"json" help:"Print one JSON document."`
	tableFlags
}

func (diffCommand) Help() string {
	return `Examples:
  guards limits diff
  guards limits diff --json`
}

// A difference is a changed limit or mode of an activity or of its tier, or a changed
// limit of a subject or a group.
type difference struct {
	Activity string `json:"activity"` // or one such as write/room or content.writes: see liveName
	Tier     string `json:"tier,omitzero"`
	Code     string `json:"code,omitzero"` // empty: the code does not have the activity
	Live     string `json:"live"`
	Mode     string `json:"mode,omitzero"`

	Until     time.Time `json:"until,omitzero"`     // when the limit ends by itself
	ModeUntil time.Time `json:"modeUntil,omitzero"` // when the mode does
}

func (c *diffCommand) Run(ctx context.Context, env session) error {
	v, version, err := c.view(ctx, env)
	if err != nil {
		return err
	}
	list, grants := v.differences(), []grantedTo{}
	for _, g := range liveedit.GrantsAt(v.Settings, v.at) {
		grants = append(grants, grantOf(g))
	}
	if c.JSON {
		return env.printLine(map[string]any{"version": version, "limits": list, "grants": grants, "blocks": v.blocks})
	}
	if len(list) == 0 && len(grants) == 0 && len(v.blocks) == 0 {
		_, err := fmt.Fprintln(env.out, "nothing differs from the code")
		return err
	}
	var t textTable
	if len(list) > 0 {
		t.head("ACTIVITY", "TIER", "CODE", "LIVE", "MODE")
		t.needs("ACTIVITY", "TIER", "LIVE", "MODE")
		t.repeats("CODE", "LIVE")
	}
	for _, d := range list {
		t.row(d.Activity, d.Tier, d.Code, d.Live+untilWhen(d.Until), d.Mode+untilWhen(d.ModeUntil))
	}
	if len(grants) > 0 {
		t.head("USER", "ROLE", "TIER", "UNTIL", "REASON")
	}
	for _, g := range grants {
		t.row(shown(g.key()), g.Role, g.Tier, g.Until.Format(time.RFC3339), g.Reason)
	}
	t.blocks(v.blocks)
	return t.write(env.out, env.width)
}

// differences returns what the settings change, sorted by activity or group, and by tier.
func (v view) differences() []difference {
	list := []difference{}
	for _, name := range slices.Sorted(maps.Keys(v.Activities)) {
		o := v.Activities[name]
		if limit, mode := v.shown(name, ""); o.Limit != "" || o.Mode != "" {
			list = append(list, difference{name, "", v.codeOf(name, ""), limit, mode, v.endOf(name, "", "limit"), v.endOf(name, "", "mode")})
		}
		for _, tier := range slices.Sorted(maps.Keys(o.Tiers)) {
			limit, _ := v.shown(name, tier)
			list = append(list, difference{name, tier, v.codeOf(name, tier), limit, "", v.endOf(name, tier, "limit"), time.Time{}})
		}
	}
	return list
}

type historyCommand struct {
	JSON bool `name:"json" help:"Print one JSON array."`
	tableFlags
}

func (historyCommand) Help() string {
	return `Examples:
  guards limits history
  guards limits history --json`
}

func (c *historyCommand) Run(ctx context.Context, env session) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	changes, err := c.store.live.SettingsHistory(ctx)
	if err != nil {
		return reached(err)
	}
	var t textTable
	t.head("VERSION", "AT", "BY", "WHAT", "WHY")
	t.needs("AT", "WHAT", "BY", "VERSION", "WHY")
	for i, h := range changes {
		changes[i].What = sentence(h)
		version := fmt.Sprint(h.Version)
		if h.Op == "block" || h.Op == "unblock" || h.Op == "reset" { // another document, with versions of its own, or none
			version = ""
		}
		t.row(version, h.At.UTC().Format(time.RFC3339), h.By, changes[i].What, h.Why)
	}
	if c.JSON {
		return env.printJSON(append([]liveedit.Change{}, changes...))
	}
	return t.write(env.out, env.width)
}
