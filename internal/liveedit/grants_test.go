package liveedit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
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
	s, _, err := Read(t.Context(), table)
	for after, want := range map[time.Duration]string{
		24*time.Hour - 1: "u1 admin, u1 premium,  room u1 big, u2 admin", 24 * time.Hour: "u1 premium,  room u1 big, u2 admin", 48 * time.Hour: " room u1 big, u2 admin",
	} {
		var granted []string
		for _, g := range GrantsAt(s, now.Add(after)) {
			granted = append(granted, g.UserID+" "+g.Role+g.Tier)
		}
		if got := strings.Join(granted, ", "); err != nil || got != want {
			t.Errorf("after %v: %s, %v, want %s", after, got, err, want)
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
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Grant(g, now.AddDate(-1, 0, 0)), nil })
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %s", g, err, says)
		}
	}
	// A user who is forgotten has no grants left, even if somebody else edits
	// the settings at the same time.
	table.race = func() { table.edit(t, func(s Draft) Draft { return s.Set("pin", "", "log 50/12h", "") }) }
	for _, want := range []int{2, 0} {
		if n, err := Forget(t.Context(), table, cricket.All, "u1", now); err != nil || n != want {
			t.Errorf("Forget = %d, %v, want %d", n, err, want)
		}
	}
	if document := string(table.Document); strings.Contains(document, `"u1"`) || !strings.Contains(document, `" room u1"`) || !strings.Contains(document, "u2") || !strings.Contains(document, "50/12h") {
		t.Errorf("the document is %s, want no grants", document)
	}
	for _, c := range table.history {
		if strings.Contains(fmt.Sprint(c), "u1") {
			t.Errorf("the history names a user: %+v", c)
		}
	}
}
