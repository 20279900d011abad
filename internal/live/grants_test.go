package live_test

import (
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/limits"
)

func TestGrants(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	grant := func(user, role, tier string, days int) Grant {
		return Grant{UserID: user, Role: role, Tier: tier, Until: now.AddDate(0, 0, days), Reason: "support"}
	}
	l, problems := Settings{Grants: []Grant{
		grant("u1", "admin", "", 1), grant("u1", "", "premium", 2), grant(" room u1", "", "big", 3), grant("u2", "admin", "", 3),
	}}.Limits(limits.All, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range []struct {
		user       string
		after      time.Duration
		role, tier string
	}{
		{"u1", 0, "admin", "premium"},
		{"u1", 24*time.Hour - 1, "admin", "premium"},
		{"u1", 24 * time.Hour, "", "premium"},
		{"u1", 48 * time.Hour, "", ""},
		{"u2", 48 * time.Hour, "admin", ""},
		{"u3", 0, "", ""},
	} {
		c := Case{Activity: activityOf(t, "create_post"), UserID: tt.user, BypassRoles: []string{"admin"}, At: now.Add(tt.after)}
		if got := l.Terms(c); got.Role != tt.role || got.Tier != tt.tier {
			t.Errorf("%s after %v has %q, %q, want %q, %q", tt.user, tt.after, got.Role, got.Tier, tt.role, tt.tier)
		}
	}
}
