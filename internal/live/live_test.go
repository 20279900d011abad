package live_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A table keeps settings in memory.
type table struct {
	document []byte
	version  int64
	history  []Change
	err      error
	slow     time.Duration
	looks    int
	race     func() // runs once, before a change
}

func (t *table) Settings(context.Context, bool) ([]byte, int64, error) {
	t.looks++
	time.Sleep(t.slow)
	return t.document, t.version, t.err
}

func (t *table) ChangeSettings(_ context.Context, version int64, document []byte, c Change) error {
	if race := t.race; race != nil {
		t.race = nil
		race()
	}
	if version != t.version {
		return ErrConflict
	}
	t.document, t.version = document, c.Version
	t.history = slices.Insert(t.history, 0, c)
	return t.err
}

func (t *table) SettingsHistory(context.Context) ([]Change, error) { return t.history, t.err }

// edit changes the settings, without errors.
func (t *table) edit(tb testing.TB, edit func(Settings) Settings) {
	tb.Helper()
	err := Edit(context.Background(), t, limits.All, Change{By: "test"}, func(s Settings) (Settings, error) { return edit(s), nil })
	if err != nil {
		tb.Fatal(err)
	}
}

func activityOf(tb testing.TB, name string) limits.Activity {
	tb.Helper()
	for _, g := range limits.All {
		if a, ok := g.Activity(name); ok {
			return a
		}
	}
	tb.Fatalf("no activity %s", name)
	return limits.Activity{}
}

func TestLimitsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &table{}
		f := &Follower{Table: table, Guards: limits.All}
		limit := func() int64 {
			a, _ := f.Limits().Activity(activityOf(t, "create_post"))
			limit, _ := a.Limit.Quota()
			return limit
		}
		look := func(want int64, looks int) {
			t.Helper()
			f.Look(t.Context())()
			if got := limit(); got != want || table.looks != looks {
				t.Errorf("the limit is %d after %d looks, want %d after %d", got, table.looks, want, looks)
			}
		}
		table.edit(t, func(s Settings) Settings { return s.Set("create_post", "", "20/1m", "") })
		table.looks = 0
		if got := limit(); got != 10 {
			t.Errorf("before the first look the limit is %d, want the code's", got)
		}
		look(20, 1)
		table.edit(t, func(s Settings) Settings { return s.Set("create_post", "", "5/1m", "") })
		table.looks = 1
		time.Sleep(29 * time.Second)
		look(20, 1) // not due
		time.Sleep(time.Second)
		look(5, 2)

		// What fails, is wrong or is old leaves the last good ones.
		for i, bad := range []func(){
			func() { table.err = errors.New("away") },
			func() { table.err, table.version, table.document = nil, 9, []byte("{") },
			func() { table.document = []byte(`{"activities": {"create_post": {"limit": "none"}}}`) },
			func() { table.document = []byte(`{"limits": {}}`) },
			func() { table.version, table.document = 1, []byte(`{}`) },
		} {
			bad()
			time.Sleep(30 * time.Second)
			look(5, 3+i)
		}
		// An activity that the code does not have is no reason to lose the rest.
		table.version, table.document = 10, []byte(`{"activities": {"gone": {"limit": "1/1m"}, "create_post": {"limit": "7/1m"}}}`)
		time.Sleep(30 * time.Second)
		look(7, 8)
	})
}

func TestASlowLookHoldsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &table{slow: 500 * time.Millisecond}
		table.edit(t, func(s Settings) Settings { return s.Set("create_post", "", "20/1m", "") })
		f := &Follower{Table: table, Guards: limits.All}
		began := time.Now()
		f.Look(t.Context())()
		if took := time.Since(began); took > 20*time.Millisecond || f.Limits() != nil {
			t.Errorf("the answer waited %v", took)
		}
		time.Sleep(time.Second)
		if f.Limits() == nil {
			t.Error("what a slow look brought is lost")
		}
	})
}

func TestSet(t *testing.T) {
	for _, tt := range []struct {
		activity, tier, rate string
		want                 ratelimit.Policy // nil: an error
		says                 string
	}{
		{"create_post", "", "20/1m", ratelimit.FixedWindow{Limit: 20, Window: time.Minute}, ""},
		{"create_post", "gold", "30/1m", ratelimit.FixedWindow{Limit: 30, Window: time.Minute}, ""},
		{"create_post", "", "20/1h", nil, "want 1m"},
		{"create_post", "", "0/1m", nil, "0"},
		{"create_post", "", "20/1m+5", nil, "only a bucket has a burst"},
		{"pin", "", "50/12h", ratelimit.SlidingLog{Limit: 50, Window: 12 * time.Hour}, ""},
		{"pin", "", "101/12h", nil, "at most 100"},
		{"send_message", "", "1/2s", ratelimit.TokenBucket{Limit: 1, Window: 2 * time.Second, Burst: 1, Keep: time.Hour}, ""},
		{"send_message", "burst", "1/5s+9", ratelimit.TokenBucket{Limit: 1, Window: 5 * time.Second, Burst: 9, Keep: time.Hour}, ""},
		{"send_message", "", "1/5s+x", nil, "burst"},
		{"ingest", "", "80/1h", ratelimit.SlidingWindow{Limit: 80, Window: time.Hour}, ""},
		{"update_member_role", "", "20/10s", ratelimit.Reservoir{Limit: 20, Window: 10 * time.Second, Ahead: 15 * time.Minute}, ""},
		{"update_member_role", "t", "20/10s", nil, "the same for all"},
		{"like", "", "20/1m", nil, "has a limit"},
		{"create_pots", "", "20/1m", nil, "create_pots"},
	} {
		table := &table{}
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Settings) (Settings, error) { return s.Set(tt.activity, tt.tier, tt.rate, ""), nil })
		if tt.want == nil {
			if err == nil || !strings.Contains(err.Error(), tt.says) || table.version != 0 {
				t.Errorf("%s %s %s: %v, want an error that says %s, and nothing written", tt.activity, tt.tier, tt.rate, err, tt.says)
			}
			continue
		}
		f := &Follower{Table: table, Guards: limits.All}
		f.Look(t.Context())()
		a, _ := f.Limits().Activity(activityOf(t, tt.activity))
		if diff := cmp.Diff(tt.want, a.For(tt.tier)); err != nil || diff != "" {
			t.Errorf("%s %s %s: %v (-want +got):\n%s", tt.activity, tt.tier, tt.rate, err, diff)
		}
		want := tt.rate
		if got := Rates(tt.want); got != want {
			t.Errorf("%v is written %s, want %s", tt.want, got, want)
		}
	}
}

func TestUnset(t *testing.T) {
	table := &table{}
	table.edit(t, func(s Settings) Settings {
		return s.Set("create_post", "gold", "30/1m", "").Set("pin", "", "", "shadow")
	})
	for _, step := range []struct {
		activity, tier string
		ok             bool
	}{{"create_post", "", true}, {"create_post", "", false}, {"pin", "gold", false}, {"pin", "", true}} {
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Settings) (Settings, error) { return s.Unset(step.activity, step.tier) })
		if (err == nil) != step.ok {
			t.Errorf("unset %+v: %v", step, err)
		}
	}
	if string(table.document) != "{}" || table.version != 3 {
		t.Errorf("%s at version %d is left, want nothing at 3", table.document, table.version)
	}
}

// What the code can't follow any more locks nobody out: the rest is followed,
// changed and forgotten, and it can be taken back.
func TestSettingsOfOtherCode(t *testing.T) {
	table := &table{version: 7, document: []byte(`{"activities": {"gone": {"limit": "1/1m"}, "lost": {"mode": "off"},
		"create_post": {"limit": "20/1h"}, "pin": {"limit": "50/12h"}},
		"grants": [{"userId": "u1", "role": "admin", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`)}
	f := &Follower{Table: table, Guards: limits.All}
	if err := f.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	pin, _ := f.Limits().Activity(activityOf(t, "pin"))
	if limit, _ := pin.Limit.Quota(); limit != 50 {
		t.Errorf("the rest is not followed: %v", pin)
	}
	if roles, _ := f.Limits().Granted("u1", time.UnixMilli(0)); len(roles) != 1 {
		t.Errorf("grants are not followed: %v", roles)
	}
	table.edit(t, func(s Settings) Settings { return s.Set("add_comment", "", "", "off") })
	if n, err := Forget(t.Context(), table, limits.All, "u1", time.Now()); n != 1 || err != nil {
		t.Errorf("Forget = %d, %v", n, err)
	}
	for _, name := range []string{"gone", "lost", "create_post"} {
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Settings) (Settings, error) { return s.Unset(name, "") })
		if err != nil {
			t.Errorf("unset %s: %v", name, err)
		}
	}
	if got := string(table.document); got != `{"activities":{"add_comment":{"mode":"off"},"pin":{"limit":"50/12h"}}}` {
		t.Errorf("%s is left", got)
	}
}

func TestGrants(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	grant := func(user, role, tier string, days int) Grant {
		return Grant{UserID: user, Role: role, Tier: tier, Until: now.AddDate(0, 0, days), Reason: "support"}
	}
	table := &table{}
	table.edit(t, func(s Settings) Settings {
		s = s.Grant(grant("u1", "admin", "", 1), now)
		s = s.Grant(grant("u1", "", "gold", 1), now)
		s = s.Grant(grant("u1", "", "premium", 2), now) // in place of gold
		return s.Grant(grant("u2", "admin", "", 3), now)
	})
	f := &Follower{Table: table, Guards: limits.All}
	f.Look(t.Context())()
	for _, tt := range []struct {
		user  string
		after time.Duration
		roles []string
		tier  string
	}{
		{"u1", 0, []string{"admin"}, "premium"},
		{"u1", 24*time.Hour - 1, []string{"admin"}, "premium"},
		{"u1", 24 * time.Hour, nil, "premium"},
		{"u1", 48 * time.Hour, nil, ""},
		{"u2", 48 * time.Hour, []string{"admin"}, ""},
		{"u3", 0, nil, ""},
	} {
		roles, tier := f.Limits().Granted(tt.user, now.Add(tt.after))
		if !slices.Equal(roles, tt.roles) || tier != tt.tier {
			t.Errorf("%s after %v has %v, %q, want %v, %q", tt.user, tt.after, roles, tier, tt.roles, tt.tier)
		}
	}
	for says, g := range map[string]Grant{
		"role or a tier": {UserID: "u1", Until: now, Reason: "r"},
		"an end":         {UserID: "u1", Role: "admin", Reason: "r"},
		"a reason":       {UserID: "u1", Role: "admin", Until: now},
		"userId":         {UserID: "u 1", Role: "admin", Until: now, Reason: "r"},
	} {
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Settings) (Settings, error) { return s.Grant(g, now.AddDate(-1, 0, 0)), nil })
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %s", g, err, says)
		}
	}
	// Who is forgotten has none any more, also where somebody else edits meanwhile.
	table.race = func() { table.edit(t, func(s Settings) Settings { return s.Set("pin", "", "50/12h", "") }) }
	for _, want := range []int{2, 0} {
		if n, err := Forget(t.Context(), table, limits.All, "u1", now); err != nil || n != want {
			t.Errorf("Forget = %d, %v, want %d", n, err, want)
		}
	}
	if document := string(table.document); strings.Contains(document, "u1") || !strings.Contains(document, "u2") || !strings.Contains(document, "50/12h") {
		t.Errorf("%s is left", document)
	}
	for _, c := range table.history {
		if strings.Contains(c.What+c.Why, "u1") {
			t.Errorf("the history names a user: %+v", c)
		}
	}
}
