package command

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	app "github.com/cric-talk/guards/limits"
)

// A document holds live limits.
type document struct{ content []byte }

func (d document) Settings(context.Context, bool) (live.Stored, error) {
	return live.Stored{Version: 1, Document: d.content}, nil
}

func (document) Blocks(context.Context, bool) (live.Stored, error) { return live.Stored{}, nil }

// anySettings draws live limits of activities and tiers, modes and grants. Some
// can't be applied, because their window is not the code's, and some have ended.
func anySettings(t *rapid.T) (s liveedit.Draft) {
	activity := rapid.SampledFrom(append([]string{"book.notes"}, inForceActivities...))
	tier := rapid.SampledFrom([]string{"", "", "premium", "gold", "burst"})
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		a := activity.Draw(t, "activity")
		limit := rapid.SampledFrom(map[string][]string{
			"create_post":  {"5/1m", "25/1m", "10/1m", "20/1h"},
			"send_message": {"bucket 1/3s", "bucket 2/6s burst 4 keep 2h", "bucket 1/9s", "9/1m"},
			"add_note":     {"notes: 5/1m", "notes: 25/1m", "notes: 20/1h", "9/1m"},
			"book.notes":   {"6/1m", "26/1m", "16/1m", "20/1h"},
		}[a]).Draw(t, "limit")
		mode := rapid.SampledFrom([]string{"", "", "", "enforce", "shadow", "off"}).Draw(t, "mode")
		if a == "book.notes" { // a group has no mode
			mode = ""
		}
		s = s.Set(a, tier.Draw(t, "tier"), limit, mode)
	}
	for range rapid.IntRange(0, 3).Draw(t, "grants") {
		g := live.Grant{UserID: rapid.SampledFrom(inForceUsers).Draw(t, "granted to"), Reason: "r"}
		if g.Role = rapid.SampledFrom([]string{"", "admin", "night", "staff"}).Draw(t, "role"); g.Role == "" {
			g.Tier = tier.Filter(func(tier string) bool { return tier != "" }).Draw(t, "granted tier")
		}
		g.Until = pinned.Add(time.Duration(rapid.IntRange(-2, 30).Draw(t, "ends in hours")) * time.Hour)
		s = s.Grant(g, time.Time{})
	}
	return s
}

var (
	inForceActivities = []string{"create_post", "send_message", "add_note"}
	inForceUsers      = []string{"u1", "u2"}
	inForcePage       = append([]guards.Guard{{Name: "notes-guard", Message: "m", Activities: []guards.Activity{
		{Name: "add_note", Limit: "notes: 10/1m", Tiers: guards.Tiers{"premium": "notes: 20/1m"}, Group: "book"},
		{Name: "edit_note", Limit: "notes: 30/1m", Group: "book"},
	}}}, app.All...)
	inForceGuards = cricket.Link(inForcePage...)
)

// A decided is what a guard does with a user, or what a command makes a reader
// believe.
type decided struct {
	exempt string // unlimited or bypassed: nothing is counted, and the rest is empty
	limit  int64
	window time.Duration
	shadow bool
}

// following returns the guard of an activity, with the settings and at a time.
func following(t *rapid.T, content []byte, activity string, at time.Time) *guard.Handler {
	g, _, _ := inForceGuards.Activity(activity)
	f := &live.Follower{Source: document{content: content}, Guards: inForceGuards}
	testkit.OK(t, f.Read(t.Context()))
	return &guard.Handler{
		Guard: g, Live: f, BypassRoles: []string{"admin", "night"},
		Limiter: &ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return at }},
	}
}

// decides asks a guard: first for its limit, then for more than that.
func decides(t *rapid.T, h *guard.Handler, r guard.Request) decided {
	ask := func(op guards.Op, count int64) guard.Answer {
		r.Op, r.Count = op, count
		return testkit.Must(h.Decide(t.Context(), r))(t)
	}
	a := ask(guards.Status, 1)
	if a.Decision == nil {
		return decided{exempt: string(a.Reason)}
	}
	d := decided{limit: a.Decision.Limit, window: a.Decision.Window}
	ask(guards.Check, d.limit)
	d.shadow = ask(guards.Check, 1).Reason == ratelimit.Shadow
	return d
}

// believed returns what a reader believes who sees a limit, a mode and a role in
// BYPASS_ROLES, if one is shown.
func believed(limit policy.Policy, mode, role string) decided {
	switch {
	case mode == "off":
		return decided{exempt: "unlimited"}
	case role != "":
		return decided{exempt: "bypassed"}
	}
	d := decided{shadow: mode == "shadow"}
	empty := limit.Read(0, 0, nil)
	d.limit, d.window = empty.Limit, empty.Window
	return d
}

// What a guard decides is what guards check, status and limits --live show,
// whatever operators have set. If one of them worked out by
// itself what is in force, the next change of a rule would make it wrong here.
func TestCommandsShowWhatTheGuardDecides(t *testing.T) {
	t.Setenv("BYPASS_ROLES", "admin,night")
	rapid.Check(t, func(t *rapid.T) {
		s := anySettings(t)
		content := testkit.Must(s.Document())(t)
		at := pinned.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "hour")) * time.Hour)
		r := guard.Request{
			UserID: rapid.SampledFrom(inForceUsers).Draw(t, "user"), Activity: rapid.SampledFrom(inForceActivities).Draw(t, "activity"),
			Tier: rapid.SampledFrom([]string{"", "premium", "gold", "burst"}).Draw(t, "tier"),
		}
		v := session{guards: inForceGuards, now: func() time.Time { return at }}.viewOf(s.Settings)
		_, code, _ := inForceGuards.Activity(r.Activity)
		h := following(t, content, r.Activity, at)
		want, shown := decides(t, h, r), map[string]decided{}

		one := standings(limits.Guards{{Activities: []limits.Activity{code}}}, r.UserID, r.Tier, nil, nil, v.limits, at)[0]
		ruling := cmp.Or(one.Live, &ruling{})
		shown["status"] = believed(policy.Must(cmp.Or(ruling.Limit, code.For(cmp.Or(ruling.Tier, r.Tier)).String())), ruling.Mode, ruling.Role)
		if limit := shown["status"].limit; limit != 0 && limit != one.Limit {
			t.Fatalf("status shows the limits %d and %s", one.Limit, ruling)
		}
		var note strings.Builder
		check := checkCommand{Activity: r.Activity, User: r.UserID, Tier: r.Tier}
		check.explainLive(session{err: &note, now: func() time.Time { return at }}, h)
		if got := note.String(); (got != "") != (one.Live != nil) || !strings.Contains(got, one.Live.String()) {
			t.Fatalf("check notes %q, and status shows %q", got, one.Live)
		}

		limit, mode := rows(v.list(), r.Activity)
		role, tier := granted(v, r.UserID)
		shown["limits --live"] = believed(limit.For(named(limit, tier, r.Tier)), mode, role)

		for name, got := range shown {
			if got != want {
				t.Fatalf("%s shows %+v, and the guard decides %+v about %+v", name, got, want, r)
			}
		}
	})
}

// rows returns what limits --live shows of an activity.
func rows(list []listedLive, name string) (a limits.Activity, mode string) {
	a.Tiers = limits.Tiers{}
	for _, l := range list {
		if l.Activity == name && l.Tier == "" {
			a.Limit, mode = policy.Must(l.Limit), l.Mode
		} else if l.Activity == name {
			a.Tiers[l.Tier] = policy.Must(l.Limit)
		}
	}
	return a, mode
}

// granted returns what limits --live shows of a user's grants: a
// role in BYPASS_ROLES and a tier.
func granted(v view, user string) (role, tier string) {
	for _, g := range liveedit.GrantsAt(v.Settings, v.at) {
		switch {
		case g.UserID != user || g.Role == "staff":
		case g.Role != "":
			role = g.Role
		default:
			tier = g.Tier
		}
	}
	return role, tier
}

// named returns the granted tier if the activity has it, or else the caller's.
func named(a limits.Activity, granted, callers string) string {
	if _, ok := a.Tiers[granted]; ok {
		return granted
	}
	return callers
}
