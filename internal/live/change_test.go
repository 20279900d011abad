package live_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit"
)

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
	table := &table{kept: kept{version: 7, document: []byte(`{"activities": {"gone": {"limit": "1/1m"}, "lost": {"mode": "off"},
		"create_post": {"limit": "20/1h"}, "pin": {"limit": "50/12h"}},
		"grants": [{"userId": "u1", "role": "admin", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`)}}
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
