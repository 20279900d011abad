package live_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

func TestGrants(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	grant := func(user, role, tier string, days int) Grant {
		return Grant{UserID: user, Role: role, Tier: tier, Until: now.AddDate(0, 0, days), Reason: "support"}
	}
	l, problems := Settings{Grants: []Grant{
		grant("u1", "admin", "", 1), grant("u1", "", "premium", 2), grant(" room u1", "", "big", 3), grant("u2", "admin", "", 3),
	}}.Limits(cricket.All, nil)
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
		c := Query{Activity: activityOf(t, "create_post"), UserID: tt.user, BypassRoles: []string{"admin"}, At: now.Add(tt.after)}
		if got := l.Terms(c); got.Role != tt.role || got.Tier != tt.tier {
			t.Errorf("%s after %v has %q, %q, want %q, %q", tt.user, tt.after, got.Role, got.Tier, tt.role, tt.tier)
		}
	}
}

// A tier that is granted to somebody changes that one's limit and nobody else's: the
// user's, the room's or the tenant's. A tier that the caller names is for all of them.
func TestAGrantedTierIsForTheOneWhoHasIt(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	part := func(name, limit, pro string) limits.Subject {
		return limits.Subject{Name: name, Limit: policy.Must(limit), Tiers: limits.Tiers{"pro": policy.Must(pro), "max": policy.Must("99/1m")}}
	}
	user := part("", "1/1m", "11/1m")
	write := limits.Activity{
		Name: "write", Limit: user.Limit, Tiers: user.Tiers,
		Subjects: []limits.Subject{part("room", "2/1m", "12/1m"), part("tenant", "3/1m", "13/1m")},
	}
	guards := limits.Guards{{Name: "g", Message: "m", Activities: []limits.Activity{write}}}
	room, tenant := limits.SubjectID("room", "r"), limits.SubjectID("tenant", "t")
	for name, tt := range map[string]struct {
		grants map[string]string // by who has them: the granted tier
		tier   string            // that the caller names
		want   string            // the limits of the user, the room and the tenant
	}{
		"nobody":                            {nil, "", "1/1m 2/1m 3/1m"},
		"the caller's":                      {nil, "pro", "11/1m 12/1m 13/1m"},
		"the user":                          {map[string]string{"u": "pro"}, "", "11/1m 2/1m 3/1m"},
		"the room":                          {map[string]string{room: "pro"}, "", "1/1m 12/1m 3/1m"},
		"the tenant":                        {map[string]string{tenant: "pro"}, "", "1/1m 2/1m 13/1m"},
		"a tenant of the room's name":       {map[string]string{limits.SubjectID("tenant", "r"): "pro"}, "", "1/1m 2/1m 3/1m"},
		"a user of the room's name":         {map[string]string{"r": "pro"}, "", "1/1m 2/1m 3/1m"},
		"room and tenant":                   {map[string]string{room: "pro", tenant: "max"}, "", "1/1m 12/1m 99/1m"},
		"the user, and the caller's":        {map[string]string{"u": "max"}, "pro", "99/1m 12/1m 13/1m"},
		"the room, and the caller's":        {map[string]string{room: "max"}, "pro", "11/1m 99/1m 13/1m"},
		"the user, by a tier of nobody":     {map[string]string{"u": "none"}, "pro", "11/1m 12/1m 13/1m"},
		"the tenant, and a tier of nobody":  {map[string]string{tenant: "pro"}, "none", "1/1m 2/1m 13/1m"},
		"the user by one, the room another": {map[string]string{"u": "pro", room: "max"}, "", "11/1m 99/1m 3/1m"},
	} {
		var s Settings
		for id, tier := range tt.grants {
			s.Grants = append(s.Grants, Grant{UserID: id, Tier: tier, Until: now.Add(time.Hour), Reason: "r"})
		}
		l, problems := s.Limits(guards, nil)
		terms := l.Terms(Query{Activity: write, UserID: "u", Subjects: map[string]string{"room": "r", "tenant": "t"}, Tier: tt.tier, At: now})
		var got []string
		for part := range terms.Parts {
			got = append(got, part.Limit.String())
		}
		if strings.Join(got, " ") != tt.want || len(problems) > 0 {
			t.Errorf("%s: %v, %v, want %s", name, got, problems, tt.want)
		}
	}
}
