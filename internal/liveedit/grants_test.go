package liveedit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/limits"
)

func TestGrantsAreEdited(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	grant := func(user, role, tier string, days int) live.Grant {
		return live.Grant{UserID: user, Role: role, Tier: tier, Until: now.AddDate(0, 0, days), Reason: "support"}
	}
	table := &table{}
	table.edit(t, func(s Draft) Draft {
		s = s.Grant(grant("u1", "admin", "", 1), now)
		s = s.Grant(grant("u1", "", "gold", 1), now)
		s = s.Grant(grant("u1", "", "premium", 2), now)   // replaces gold
		s = s.Grant(grant(" room u1", "", "big", 3), now) // a subject
		return s.Grant(grant("u2", "admin", "", 3), now)
	})
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
		var granted []string
		s, _, err := Read(t.Context(), table)
		for _, g := range GrantsAt(s, now.Add(tt.after)) {
			if g.UserID == tt.user {
				granted = append(granted, g.Role+g.Tier)
			}
		}
		want := slices.DeleteFunc([]string{tt.role, tt.tier}, func(name string) bool { return name == "" })
		if err != nil || !slices.Equal(granted, want) {
			t.Errorf("%s after %v has %v, %v, want %v", tt.user, tt.after, granted, err, want)
		}
	}
	for says, g := range map[string]live.Grant{
		"either a role or":  {UserID: "u1", Until: now, Reason: "r"},
		"time when it ends": {UserID: "u1", Role: "admin", Reason: "r"},
		"a reason":          {UserID: "u1", Role: "admin", Until: now},
		"userId":            {UserID: "u 1", Role: "admin", Until: now, Reason: "r"},
		"userId is missing": {UserID: " room ", Tier: "big", Until: now, Reason: "r"},
		"userId has U+0020": {UserID: " config", Tier: "big", Until: now, Reason: "r"},
		"character 2":       {UserID: " room r 42", Tier: "big", Until: now, Reason: "r"},
		"roles are about":   {UserID: " room r42", Role: "admin", Until: now, Reason: "r"},
	} {
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Draft) (Draft, error) { return s.Grant(g, now.AddDate(-1, 0, 0)), nil })
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %s", g, err, says)
		}
	}
	// A user who is forgotten has no grants left, even if somebody else edits
	// the settings at the same time.
	table.race = func() { table.edit(t, func(s Draft) Draft { return s.Set("pin", "", "log 50/12h", "") }) }
	for _, want := range []int{2, 0} {
		if n, err := Forget(t.Context(), table, limits.All, "u1", now); err != nil || n != want {
			t.Errorf("Forget = %d, %v, want %d", n, err, want)
		}
	}
	if document := string(table.document); strings.Contains(document, `"u1"`) || !strings.Contains(document, `" room u1"`) || !strings.Contains(document, "u2") || !strings.Contains(document, "50/12h") {
		t.Errorf("the document is %s, want no grants", document)
	}
	for _, c := range table.history {
		if strings.Contains(fmt.Sprint(c), "u1") {
			t.Errorf("the history names a user: %+v", c)
		}
	}
}
