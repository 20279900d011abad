package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

type listCommand struct {
	JSON     bool `name:"json" help:"Print one JSON array." xor:"form"`
	Markdown bool `help:"Print a table for a document." xor:"form,live"`
	Live     bool `help:"Show the limits in force beside the code's, with modes and grants, and with who set them and when. Reads the table." xor:"live"`
	tableFlags
}

func (listCommand) Help() string {
	return `With --live, an empty MODE is the function's own mode. If two changes set the limit and
the mode, a second row has who set the mode. SINCE and BY are empty for what was written
by hand. Examples:
  guards limits
  guards limits --json
  guards limits --markdown
  guards limits --live
  guards limits --live --json`
}

// A listed is one activity of the list.
type listed struct {
	Function string       `json:"function"`
	Activity string       `json:"activity"`
	Policy   string       `json:"policy"` // the limit's text form, or "unlimited"
	Limit    int64        `json:"limit,omitzero"`
	WindowMs int64        `json:"windowMs,omitzero"`
	Tiers    limits.Tiers `json:"tiers,omitempty"`
	Group    string       `json:"group,omitzero"`
	Hold     bool         `json:"hold,omitzero"`
	Subjects []subject    `json:"subjects,omitempty"`

	code limits.Activity
}

func (c *listCommand) Run(ctx context.Context, env session) error {
	if c.Live {
		return c.live(ctx, env)
	}
	if c.given() {
		return errors.New("--table, --endpoint and --region go with --live")
	}
	if env.pageFile != "" {
		env.note("the limits of " + env.pageFile)
	}
	all := list(env.guards)
	switch {
	case c.JSON:
		return env.printJSON(all)
	case c.Markdown:
		_, err := io.WriteString(env.out, scaffold.Markdown(env.guards))
		return err
	}
	return tableOfCode(all).write(env.out, env.width)
}

// tableOfCode returns the activities for people. A column that would be empty is left out.
func tableOfCode(all []listed) (t textTable) {
	rows := make([][]string, len(all)+1)
	for _, column := range []struct {
		head string
		cell func(listed) string
	}{
		{"FUNCTION", func(l listed) string { return l.Function }},
		{"ACTIVITY", func(l listed) string { return l.Activity }},
		{"LIMIT", func(l listed) string { return l.Policy }},
		{"TIERS", func(l listed) string { return scaffold.Tiers(l.code, "") }},
		{"SUBJECTS", func(l listed) string { return scaffold.Subjects(l.code, "") }},
		{"GROUP", func(l listed) string { return l.Group }},
		{"HOLD", func(l listed) string {
			if l.Hold {
				return "15 min"
			}
			return ""
		}},
	} {
		used := column.head == "TIERS" || slices.ContainsFunc(all, func(l listed) bool { return column.cell(l) != "" })
		if !used {
			continue
		}
		rows[0] = append(rows[0], column.head)
		for i, l := range all {
			rows[i+1] = append(rows[i+1], column.cell(l))
		}
	}
	t.head(rows[0]...)
	t.needs("ACTIVITY", "LIMIT")
	for _, row := range rows[1:] {
		t.row(row...)
	}
	return t
}

// list returns the activities of all guards.
func list(guards limits.Guards) (all []listed) {
	for g, a := range guards.All {
		l := listed{Function: g.Name, Activity: a.Name, Policy: "unlimited", Tiers: a.Tiers, Group: a.Group, Hold: a.Hold, Subjects: subjectsOf(a), code: a}
		if !a.Unlimited {
			quota := a.Limit.Quota()
			l.Policy, l.Limit, l.WindowMs = a.Limit.String(), quota.Limit, quota.Window.Milliseconds()
		}
		all = append(all, l)
	}
	return all
}

// A listedLive is the limit in force of an activity or of its subject, or of one of their
// tiers, beside the code's.
type listedLive struct {
	Function string `json:"function"`
	Activity string `json:"activity"`
	Subject  string `json:"subject,omitzero"` // empty: of users
	Tier     string `json:"tier,omitzero"`
	Code     string `json:"code"`          // empty: the code does not have the tier
	Limit    string `json:"limit"`         // in force
	Set      stamp  `json:"set,omitzero"`  // of a limit that operators set
	Mode     string `json:"mode,omitzero"` // empty: the mode that the function is deployed with
	ModeSet  stamp  `json:"modeSet,omitzero"`

	Until     time.Time `json:"until,omitzero"`     // when the limit ends by itself
	ModeUntil time.Time `json:"modeUntil,omitzero"` // when the mode does
}

// live prints the limits in force.
func (c *listCommand) live(ctx context.Context, env session) error {
	v, _, err := c.view(ctx, env)
	if err != nil {
		return err
	}
	for _, err := range v.problems {
		env.note(fmt.Sprintf("%v. This can't be applied, so new instances follow the code: see guards limits diff", err))
	}
	grants := []grantedTo{}
	for _, g := range liveedit.GrantsAt(v.Settings, v.at) {
		to := grantOf(g)
		to.stamp = stampOf(g.Set, "")
		grants = append(grants, to)
	}
	if c.JSON {
		return env.printLine(map[string]any{"table": c.opened.Table, "region": c.opened.Region, "limits": v.list(), "grants": grants, "blocks": v.blocks})
	}
	t := tableOf(v.list(), grants)
	if len(v.blocks) > 0 {
		t.row()
		t.blocks(v.blocks)
	}
	t.explain(slices.ContainsFunc(v.list(), func(l listedLive) bool { return strings.Contains(l.Limit, " max ") }), upToMax)
	return t.below(env, "in force in "+c.where()+":")
}

// list returns the limits of all activities, of their subjects and of all tiers.
func (v view) list() (list []listedLive) {
	for g, code := range v.guards.All {
		now, _ := v.limits.Activity(code)
		for _, part := range now.Parts() {
			for _, tier := range append([]string{""}, slices.Sorted(maps.Keys(part.Tiers))...) {
				list = append(list, v.listed(g, code, part.Name, tier))
			}
		}
	}
	return list
}

// listed returns the limit of one part of an activity for callers of a tier.
func (v view) listed(g limits.Guard, code limits.Activity, subject, tier string) listedLive {
	l := listedLive{Function: g.Name, Activity: code.Name, Subject: subject, Tier: tier}
	l.Limit, l.Mode = v.inForce(code, subject, tier)
	name := live.Target{Activity: code.Name, Subject: subject}.String()
	if _, ok := code.Part(subject).Tiers[tier]; ok || tier == "" {
		l.Code = v.codeOf(name, tier)
	}
	if l.Until = v.endOf(name, tier, "limit"); tier == "" {
		l.ModeSet, l.ModeUntil = stampOf(v.Activities[name].ModeSet, l.Mode), v.endOf(name, "", "mode")
	}
	l.Set = v.setBy(code, subject, tier)
	return l
}

// setBy returns who set the limit of a part of an activity for a tier. A limit of its own
// wins over limits of its group. If several of these were set, it is the last one.
func (v view) setBy(code limits.Activity, subject, tier string) (last stamp) {
	names := []string{live.Target{Activity: code.Name, Subject: subject}.String()}
	if v.Activities[names[0]].Text(tier) == "" && code.Group != "" {
		for _, r := range code.Part(subject).Limit.Rates() {
			names = append(names, live.Target{Group: code.Group, Subject: subject, Limit: r.Name}.String())
		}
	}
	for _, name := range names {
		o := v.Activities[name]
		if text := o.Text(tier); text != "" {
			if by := stampOf(o.Set[tier], text); !by.Since.Before(last.Since) {
				last = by
			}
		}
	}
	return last
}

// tableOf returns the limits and the grants for people. If a limit and its mode
// were set by two changes, each has a row: the first one tells who set the limit.
func tableOf(list []listedLive, grants []grantedTo) (t textTable) {
	t.head("ACTIVITY", "TIER", "CODE", "IN FORCE", "MODE", "SINCE", "BY")
	t.needs("ACTIVITY", "TIER", "IN FORCE", "MODE")
	t.repeats("CODE", "IN FORCE")
	for _, l := range list {
		row := func(code, limit string, by stamp) {
			t.row(append([]string{live.Target{Activity: l.Activity, Subject: l.Subject}.String(), l.Tier, code, limit, l.Mode + untilWhen(l.ModeUntil)}, by.cells()...)...)
		}
		row(l.Code, l.Limit+untilWhen(l.Until), cmp.Or(l.Set, l.ModeSet))
		if by := cmp.Or(l.ModeSet, l.Set); by != cmp.Or(l.Set, l.ModeSet) {
			row("", "", by)
		}
	}
	if len(grants) > 0 {
		t.row()
		t.head("USER", "ROLE", "TIER", "UNTIL", "SINCE", "BY", "REASON")
		t.needs("USER", "ROLE", "TIER", "UNTIL", "REASON")
	}
	for _, g := range grants {
		t.row(append(append([]string{shown(g.key()), g.Role, g.Tier, g.Until.Format(time.RFC3339)}, g.cells()...), g.Reason)...)
	}
	return t
}
