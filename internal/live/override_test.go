package live_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// set applies settings with one live limit, of an activity of one of the guards or of one
// of its tiers. It returns the activity with the limits that are then in force.
func set(guards limits.Guards, activity, tier, limit string) (limits.Activity, error) {
	o := Override{Limit: limit}
	if tier != "" {
		o = Override{Tiers: map[string]string{tier: limit}}
	}
	l, problems := Settings{Activities: map[string]Override{activity: o}}.Limits(guards, nil)
	_, code, _ := guards.Activity(activity)
	now, _ := l.Activity(code)
	return now, errors.Join(problems...)
}

func TestSet(t *testing.T) {
	for _, tt := range []struct{ activity, tier, limit, inForce string }{
		{"create_post", "", "20/1m", "20/1m"},
		{"create_post", "", " fixed  20/60s", "20/1m"},
		{"create_post", "gold", "30/1m", "30/1m"},
		{"create_post", "premium", "30/1m", "30/1m"},
		{"pin", "", "log 50/12h", "log 50/12h"},
		{"ingest", "", "sliding 80/60m", "sliding 80/1h"},
		// If the text has no keep or ahead, the code's apply. A burst of the code
		// never applies.
		{"send_message", "", "bucket 1/2s", "bucket 1/2s keep 1h"},
		{"send_message", "", "bucket 1/2s keep 2h", "bucket 1/2s keep 2h"},
		{"send_message", "burst", "bucket 1/5s burst 9", "bucket 1/5s burst 9 keep 1h"},
		{"send_message", "burst", "bucket 1/5s", "bucket 1/5s keep 1h"},
		{"update_member_role", "", "reservoir 20/10s", "reservoir 20/10s ahead 15m"},
		{"update_member_role", "big", "reservoir 20/10s ahead 5m", "reservoir 20/10s ahead 5m"},
	} {
		a, err := set(cricket.All, tt.activity, tt.tier, tt.limit)
		if got := a.For(tt.tier).String(); err != nil || got != tt.inForce {
			t.Errorf("%s %s %q: %q is in force, %v, want %q", tt.activity, tt.tier, tt.limit, got, err, tt.inForce)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	for _, tt := range []struct{ activity, tier, limit, want string }{
		{"create_post", "", "20/1h", `create_post: a live limit keeps the kind, the window and the cost of the code's limit: window of "20/1h" is 1h, want 1m`},
		{"create_post", "gold", "20/1h", `create_post: tier "gold": a live limit keeps the kind, the window and the cost of the code's limit: window of "20/1h" is 1h, want 1m`},
		{"create_post", "", "minute: 20/1m, day: 99/1d", `has 1 limit and "minute: 20/1m, day: 99/1d" has 2`},
		{"ingest", "", "20/1m", `did you mean "sliding 20/1m"?`},
		{"ingest", "", "log 80/1h", `a live limit keeps the kind, the window and the cost of the code's limit: "log 80/1h" counts in another way than "sliding 50/1h"`},
		{"like", "", "20/1m", "an activity that has a limit"},
		{"create_pots", "", "20/1m", "create_pots"},
	} {
		_, err := set(cricket.All, tt.activity, tt.tier, tt.limit)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s %q: %v, want an error that contains %s", tt.activity, tt.tier, tt.limit, err, tt.want)
		}
	}
}

// guarding returns a guard with the one activity "act".
func guarding(limit policy.Policy) []limits.Guard {
	return []limits.Guard{{Name: "g", Message: "m", Activities: []limits.Activity{{Name: "act", Limit: limit}}}}
}

// Live limits accept exactly what limits.go accepts as a tier, for every kind
// of policy. A live limit without a cost has the code's cost.
func TestLiveLimitsAndTiersAcceptTheSame(t *testing.T) {
	var texts []string
	for _, k := range policy.Kinds() {
		for _, text := range k.Examples {
			texts = append(texts, text, "a: "+text+", b: 10/1m", "b: 5/1m, a: "+text, "a: "+text+", b: sliding 9/1m")
		}
	}
	accepted := 0
	for _, code := range texts {
		p, err := policy.Parse(code)
		if err != nil {
			continue
		}
		for _, text := range texts {
			live, err := policy.Parse(text)
			ok := err == nil && policy.CompatibleTiers(p, live) == nil
			if err == nil && !strings.Contains(text, "cost") {
				live, err = live.WithDefaults(p)
				ok = err == nil && policy.CompatibleTiers(p, live) == nil
			}
			a, err := set(guarding(p), "act", "", text)
			switch {
			case (err == nil) != ok:
				t.Errorf("%q instead of %q: %v, want accepted: %v", text, code, err, ok)
			case ok:
				accepted++
				if err := policy.CompatibleTiers(a.Limit, p); err != nil {
					t.Errorf("%q instead of %q is in force: %v", text, code, err)
				}
			case !a.Limit.Equal(p):
				t.Errorf("%q instead of %q is refused, and %q is in force", text, code, a.Limit)
			}
		}
	}
	if accepted < len(texts) {
		t.Errorf("only %d pairs were accepted", accepted)
	}
}

// A mode, a limit and the limit of each tier apply separately. A part that the
// code can't follow keeps its last good value, or the code's, and is reported.
// The code has 10/1m, and premium 20/1m.
func TestEachPartOfAnOverrideAppliesAlone(t *testing.T) {
	for _, tt := range []struct {
		name      string
		documents []string // of create_post, one after the other
		inForce   string   // mode, limit, and the limits of the tiers
		reports   []string
	}{
		{
			"a deploy changed the window: the mode applies", []string{`{"limit": "5/1h", "tiers": {"premium": "9/1h"}, "mode": "off"}`},
			`off 10/1m premium=20/1m`, []string{`create_post: a live limit`, `create_post: tier "premium": a live limit`},
		},
		{
			"a limit of another window: the tiers apply", []string{`{"limit": "5/1h", "tiers": {"premium": "9/1m", "gold": "8/1m"}}`},
			` 10/1m gold=8/1m premium=9/1m`, []string{`create_post: a live limit`},
		},
		{
			"one tier of another window: the rest applies", []string{`{"limit": "5/1m", "tiers": {"premium": "9/1h", "gold": "8/1m"}, "mode": "shadow"}`},
			`shadow 5/1m gold=8/1m premium=20/1m`, []string{`tier "premium"`},
		},
		{
			"a new tier that can't apply is the ordinary limit", []string{`{"limit": "5/1m", "tiers": {"gold": "log 8/1m"}}`},
			` 5/1m premium=20/1m`, []string{`tier "gold"`},
		},
		{
			"a mode that does not exist: the limits apply", []string{`{"limit": "5/1m", "mode": "on"}`},
			` 5/1m premium=20/1m`, []string{`create_post: mode is "on"`},
		},
		{
			"each part keeps its own last good value", []string{
				`{"limit": "5/1m", "tiers": {"premium": "9/1m", "gold": "8/1m"}, "mode": "shadow"}`,
				`{"limit": "x", "tiers": {"premium": "x", "gold": "7/1m"}, "mode": "x"}`,
				`{"limit": "y", "tiers": {"premium": "y", "gold": "y"}, "mode": "off"}`,
			},
			`off 5/1m gold=7/1m premium=9/1m`, []string{`limit is "x"`, `limit is "y"`, `tier "premium"`, `tier "gold"`, `mode is "x"`},
		},
		{
			"a part that was undone in between keeps the code's", []string{
				`{"limit": "5/1m", "tiers": {"premium": "9/1m", "gold": "8/1m"}, "mode": "off"}`, `{"tiers": {"silver": "7/1m"}}`,
				`{"limit": "x", "tiers": {"premium": "x", "gold": "x"}, "mode": "x"}`,
			},
			` 10/1m premium=20/1m`, []string{`mode is "x"`, `tier "gold"`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := &table{}
			f, log := logged(table, cricket.All)
			for i, document := range tt.documents {
				table.Stored = Stored{Version: int64(i + 1), Document: fmt.Appendf(nil, `{"activities": {"create_post": %s}}`, document)}
				mustRead(t, f)
			}
			if got := inForce(t, f, "create_post"); got != tt.inForce {
				t.Errorf("%q is in force, want %q", got, tt.inForce)
			}
			for _, want := range tt.reports {
				if !reports(log, want) {
					t.Errorf("the log does not report %s:\n%s", want, log)
				}
			}
		})
	}
}

// inForce returns an activity's mode and limits as a text.
func inForce(t *testing.T, f *Follower, name string) string {
	t.Helper()
	a, mode := f.Limits().Activity(activityOf(t, name))
	var text strings.Builder
	text.WriteString(mode + " " + a.Limit.String())
	for _, tier := range slices.Sorted(maps.Keys(a.Tiers)) {
		text.WriteString(" " + tier + "=" + a.Tiers[tier].String())
	}
	return text.String()
}

// After a live limit is undone, a user waits at most as long as the code's
// limit says, whatever the limit was when the last action was counted.
func TestAnUndoneLimitRefusesNobodyForLonger(t *testing.T) {
	for _, tt := range []struct {
		code, live string
		longest    time.Duration // until one more action is allowed by the code's limit
	}{
		{"bucket 1/5s keep 1h", "bucket 1/12h", 5 * time.Second},
		{"bucket 10/1m burst 15", "bucket 1/1h burst 2", 6 * time.Second},
		{"10/1m", "1/1m", 0},
		{"log 100/12h", "log 1/12h", 0},
		{"sliding 50/1h", "sliding 1/1h", 0},
		{"slow: bucket 1/5s, day: 9/1d", "slow: bucket 1/12h, day: 1/1d", 5 * time.Second},
	} {
		t.Run(tt.code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { undo(t, tt.code, tt.live, tt.longest) })
		})
	}
}

func undo(t *testing.T, code, live string, longest time.Duration) {
	t.Helper()
	guards := guarding(policy.Must(code))
	act := guards[0].Activities[0]
	table := &table{}
	table.put(fmt.Sprintf(`{"act": {"limit": %q}}`, live))
	f := &Follower{Source: table, Guards: guards}
	l := &ratelimit.Limiter{Store: new(memstore.Store), Memory: ratelimit.NewMemory(ratelimit.DefaultMemory)}
	n := 0
	check := func() ratelimit.Decision {
		t.Helper()
		f.Refresh(t.Context(), 0)()
		n++
		a, _ := f.Limits().Activity(act)
		d, err := l.Check(t.Context(), ratelimit.Request{UserID: "u1", Activity: "act", Policy: a.Limit, Count: 1, ID: fmt.Sprint(n)})
		testkit.OK(t, err)
		return d
	}
	for check().Allowed {
	}
	table.put(`{}`)
	time.Sleep(30 * time.Second) // by then every instance has looked
	f.Refresh(t.Context(), 0)()
	if a, _ := f.Limits().Activity(act); !a.Limit.Equal(act.Limit) {
		t.Fatalf("the limit is %q after it was undone, want %q", a.Limit, act.Limit)
	}
	time.Sleep(longest)
	if d := check(); !d.Allowed {
		t.Errorf("refused for another %v after the limit %q was undone, want at most %v", d.Wait, live, longest)
	}
}

func TestTargetsHaveOneName(t *testing.T) {
	for name, want := range map[string]Target{
		"write":               {Activity: "write"},
		"write/room":          {Activity: "write", Subject: "room"},
		"content.writes":      {Group: "content", Limit: "writes"},
		"content.room.minute": {Group: "content", Subject: "room", Limit: "minute"},
	} {
		if got := ParseTarget(name); got != want || got.String() != name {
			t.Errorf("%s: %+v, %s, want %+v", name, got, got, want)
		}
	}
	for _, name := range []string{"", ".", "a/", "a/b/c", "a.b.c.d", "/a"} { // by hand
		if again := ParseTarget(ParseTarget(name).String()); again != ParseTarget(name) {
			t.Errorf("%q: %+v, want %+v", name, again, ParseTarget(name))
		}
	}
}

// A limit and a mode end by the guard's clock, each by itself, although nobody writes
// anything. Then the code's limit and the function's mode are in force again.
func TestOverridesEndByThemselves(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	s := Settings{
		Activities: map[string]Override{
			"create_post": {Limit: "20/1m", Tiers: map[string]string{"premium": "50/1m"}, Mode: "shadow"},
			"pin":         {Limit: "log 5/12h"},
		},
		Ends: Ends{
			"create_post": {Limits: map[string]Until{"": {Of: "20/1m", Until: start.Add(time.Hour)}, "premium": {Of: "40/1m", Until: start.Add(time.Minute)}}, Mode: Until{Of: "shadow", Until: start.Add(2 * time.Hour)}},
			"gone":        {Mode: Until{Of: "off", Until: start}},
		},
	}
	stored, err := s.Stored(1)
	testkit.OK(t, err)
	again, err := stored.Settings()
	testkit.OK(t, err)
	l, problems := again.Limits(cricket.All, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	l = l.With(Blocks{All: []Block{{UserID: "blocked", Until: start.Add(24 * time.Hour)}}})
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{0, "20/1m 50/1m shadow log 5/12h"},
		{time.Hour - 1, "20/1m 50/1m shadow log 5/12h"}, // the end of premium belongs to another limit
		{time.Hour, "10/1m 50/1m shadow log 5/12h"},
		{2*time.Hour - 1, "10/1m 50/1m shadow log 5/12h"},
		{2 * time.Hour, "10/1m 50/1m  log 5/12h"},
	} {
		at := start.Add(tt.after)
		ask := func(activity, tier string) Terms {
			return l.Terms(Query{Activity: activityOf(t, activity), UserID: "blocked", Tier: tier, At: at})
		}
		post := ask("create_post", "")
		got := fmt.Sprint(post.Limit, " ", ask("create_post", "premium").Limit, " ", post.Mode, " ", ask("pin", "").Limit)
		if got != tt.want || !post.Block.InForce(at) {
			t.Errorf("after %v: %s, blocked %v, want %s and blocked", tt.after, got, post.Block.InForce(at), tt.want)
		}
	}
}

// Without a write, an instance that reads nothing new ends an override in time. An entry that
// somebody damages beside it leaves what was in force.
func TestAnEndNeedsNoRead(t *testing.T) {
	follow(t, func(t *testing.T, b bench) {
		b.set("20/1m")
		b.Ends = fmt.Appendf(nil, `{"create_post": {"limits": {"": {"of": "20/1m", "until": %q}}}}`, time.Now().Add(45*time.Second).Format(time.RFC3339Nano))
		b.look(20, 1)
		terms := func() string {
			return b.Limits().Terms(Query{Activity: activityOf(t, "create_post"), UserID: "u", At: time.Now()}).Limit.String()
		}
		time.Sleep(14 * time.Second)
		if got := terms(); got != "20/1m" {
			t.Errorf("before the end: %s", got)
		}
		time.Sleep(time.Second)
		if got := terms(); got != "10/1m" {
			t.Errorf("after the end: %s", got)
		}
		b.Ends, b.Version = []byte(`{"create_post": 5}`), b.Version+1 // damaged: the limit stays
		b.look(20, 1)
		b.Stored = Stored{Version: b.Version + 1, Document: []byte(`{"activities": {"create_post": {"limit": 5}, "pin": {"limit": "log 7/12h"}}}`)}
		b.look(20, 1)
		if pin, _ := b.Limits().Activity(activityOf(t, "pin")); pin.Limit.Max() != 7 {
			t.Errorf("beside the damaged entry: %v, want the other one to be followed", pin.Limit)
		}
		synctest.Wait()
	})
}

// What has ended is no last good value: an edit by hand that is unfit does not bring it back.
func TestAnUnfitEditBringsNothingBackThatHasEnded(t *testing.T) {
	for name, edit := range map[string]string{
		"a limit that is none":  `{"create_post": {"limit": "many"}}`,
		"a mode that is none":   `{"create_post": {"mode": "loud"}}`,
		"another kind of limit": `{"create_post": {"limit": "log 20/1m"}}`,
		"a damaged entry":       `{"create_post": 5}`,
	} {
		follow(t, func(t *testing.T, b bench) {
			b.put(`{"create_post": {"limit": "20/1m", "mode": "shadow"}}`)
			end := time.Now().Add(45 * time.Second).Format(time.RFC3339Nano)
			b.Ends = fmt.Appendf(nil, `{"create_post": {"limits": {"": {"of": "20/1m", "until": %q}}, "mode": {"of": "shadow", "until": %[1]q}}}`, end)
			b.look(20, 1)
			time.Sleep(20 * time.Second) // over
			b.put(edit)
			b.Refresh(b.t.Context(), 0)()
			time.Sleep(30 * time.Second)
			b.Refresh(b.t.Context(), 0)()
			got := b.Limits().Terms(Query{Activity: activityOf(t, "create_post"), UserID: "u", At: time.Now()})
			if got.Limit.String() != "10/1m" || got.Mode != "" {
				t.Errorf("%s: the limit is %s in mode %q, want the code's and none", name, got.Limit, got.Mode)
			}
		})
	}
}
