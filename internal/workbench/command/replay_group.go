package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
)

// runGroup replays activities that share counts.
func (c *replayCommand) runGroup(ctx context.Context, env session) error {
	if c.Plot != "" || c.User != "" || c.Suggest != "" || len(c.Compare)+len(c.Subject) > 0 {
		return errors.New("--plot, --user, --suggest, --compare and --subject go with --activity")
	}
	members, err := c.members(env)
	if err != nil {
		return err
	}
	var names []string
	var tried []policy.Policy
	for _, m := range members {
		names, tried = append(names, m.Activity), append(tried, m.Policy)
	}
	o, err := c.options(tried, names...)
	if err != nil {
		return err
	}
	in, err := openRecord(ctx, c.Files, false)
	if err != nil {
		return err
	}
	defer in.close()
	r := &replay.Replay{Activity: members[0].Activity, Policy: members[0].Policy, Progress: func(lines int64) { in.progress(env, lines) }}
	reports, err := r.Group(ctx, in.reader(o), members[1:]...)
	result := map[string]any{"activities": reports}
	return c.report(ctx, env, reports, err, result, func(b *strings.Builder) { writeGroup(b, reports, env.width) })
}

// members returns the activities with their limits: the code's group, and the
// activities of --limit, which replace them.
func (c *replayCommand) members(env session) (all []replay.Member, err error) {
	for _, a := range env.guards.Grouped() {
		if a.Group == c.Group {
			all = append(all, replay.Member{Activity: a.Name, Policy: a.Limit})
		}
	}
	switch {
	case c.Group == "" && len(c.Limit) == 0:
		return nil, errors.New("give --activity, or --limit ACTIVITY=LIMIT for each activity of a group, or --group")
	case c.Group != "" && len(all) == 0:
		_, err := env.findInGroup(c.Group, "", "")
		return nil, err
	}
	seen := make(map[string]bool)
	for _, text := range c.Limit {
		i := strings.LastIndex(text, "=")
		name, limit := text[:max(0, i)], text[i+1:]
		switch {
		case i < 1:
			return nil, input.Invalid("--limit", input.Show(text), "ACTIVITY=LIMIT, or a limit together with --activity")
		case seen[name]:
			return nil, fmt.Errorf("--limit names %s twice", name)
		}
		seen[name] = true
		m := replay.Member{Activity: name}
		if m.Policy, err = policy.Parse(strings.TrimSpace(limit)); err != nil {
			return nil, fmt.Errorf("--limit for %s: %w", name, err)
		}
		if j := slices.IndexFunc(all, func(other replay.Member) bool { return other.Activity == name }); j >= 0 {
			all[j] = m
		} else {
			all = append(all, m)
		}
	}
	return all, meet(all)
}

// meet returns an error if the activities can't count in one item.
func meet(all []replay.Member) error {
	for i, m := range all {
		if !m.Policy.Named() {
			return fmt.Errorf("--limit for %s: limit %q has no name, want one in a group, as in \"writes: %[2]s\"", m.Activity, m.Policy)
		}
		for _, other := range all[:i] {
			if err := policy.CompatibleInGroup(other.Policy, m.Policy); err != nil {
				return fmt.Errorf("activities %s and %s: %w", other.Activity, m.Activity, err)
			}
		}
	}
	return nil
}

// writeGroup writes a table with a row for each activity, and the users who were held
// up most in one of them.
func writeGroup(b *strings.Builder, all []*replay.Report, width int) {
	type held struct {
		activity string
		replay.User
	}
	var t textTable
	var most []held
	names, from, to := make([]string, len(all)), int64(math.MaxInt64), int64(0)
	for i, r := range all {
		names[i] = r.Activity
		if r.Requests > 0 {
			from, to = min(from, r.From), max(to, r.To)
		}
	}
	fmt.Fprintf(b, "%s in one group, from %s to %s\n\n", strings.Join(names, ", "), moment(from), moment(to))
	t.head("ACTIVITY", "LIMIT", "ALLOWED", "REFUSED", "DELAYED", "USERS HELD UP", "LONGEST WAIT")
	for _, r := range all {
		share := 100 * float64(r.Allowed) / float64(max(1, r.Requests))
		t.row(r.Activity, r.Policy, fmt.Sprintf("%s of %s (%.1f %%)", grouped(r.Allowed), grouped(r.Requests), share),
			grouped(r.Refused), grouped(r.Delayed), fmt.Sprintf("%s of %s", grouped(r.HeldUp), grouped(r.Users)), inWords(r.LongestWaitMs))
		for _, u := range r.Worst {
			most = append(most, held{r.Activity, u})
		}
	}
	_ = t.write(b, width) // a Builder takes everything
	slices.SortStableFunc(most, func(a, b held) int { return cmp.Compare(b.Refused+b.Delayed, a.Refused+a.Delayed) })
	if len(most) > 0 {
		t = textTable{{}}
		t.head("USER", "ACTIVITY", "REQUESTS", "ALLOWED", "REFUSED", "DELAYED", "LONGEST WAIT")
		for _, u := range most[:min(len(most), 5)] {
			t.row(u.ID, u.activity, grouped(u.Requests), grouped(u.Allowed), grouped(u.Refused), grouped(u.Delayed), inWords(u.LongestWaitMs))
		}
		_ = t.write(b, width)
	}
	exactly(b, slices.ContainsFunc(all, func(r *replay.Report) bool { return r.Exact }))
	unusual(b, all[0])
}
