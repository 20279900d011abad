package liveedit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	guards "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A deploy has changed the window, so the live limit applies no more. Operators
// can still switch the activity off, and change its tiers.
func TestAPartThatDoesNotApplyDoesNotBlockTheOthers(t *testing.T) {
	table := &table{Stored: live.Stored{Version: 1, Document: []byte(`{"activities": {"act": {"limit": "20/1m", "tiers": {"old": "30/1m"}}}}`)}}
	guards := guards.Guards{{Name: "g", Message: "m", Activities: []guards.Activity{{Name: "act", Limit: policy.Must("10/1h")}}}}
	edit := func(tier, limit, mode string) error {
		return Edit(t.Context(), table, guards, Change{}, func(s Draft) (Draft, error) { return s.Set("act", tier, limit, mode), nil })
	}
	if err := errors.Join(edit("", "", "off"), edit("new", "40/1h", "")); err != nil {
		t.Fatal(err)
	}
	if edit("new", "40/1m", "") == nil || edit("", "30/1m", "") == nil || edit("", "", "on") == nil {
		t.Error("a part that can't apply is stored")
	}
	if got := string(table.Document); got != `{"activities":{"act":{"limit":"20/1m","tiers":{"new":"40/1h","old":"30/1m"},"mode":"off"}}}` {
		t.Errorf("the settings are %s", got)
	}
}

// An edit of a tier does not change the settings that it is compared with. So a
// limit of another kind is refused, even if the tier already has a live limit.
func TestAChangedTierIsChecked(t *testing.T) {
	table := &table{}
	table.edit(t, func(s Draft) Draft { return s.Set("create_post", "premium", "30/1m", "") })
	before := string(table.Document)
	err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Set("create_post", "premium", "log 5/1h", ""), nil })
	if err == nil || string(table.Document) != before {
		t.Errorf("%v, and the settings are %s, want an error and %s", err, table.Document, before)
	}
}

// A limit is kept in its shortest form, and one that the code can't follow is not kept.
func TestSet(t *testing.T) {
	for _, tt := range []struct{ activity, tier, limit, kept string }{
		{"create_post", "", "20/1m", `{"activities":{"create_post":{"limit":"20/1m"}}}`},
		{"create_post", "", " fixed  20/60s", `{"activities":{"create_post":{"limit":"20/1m"}}}`},
		{"create_post", "gold", "30/1m", `{"activities":{"create_post":{"tiers":{"gold":"30/1m"}}}}`},
		{"send_message", "", "bucket 1/2s", `{"activities":{"send_message":{"limit":"bucket 1/2s"}}}`}, // without the code's keep
		{"create_post", "", "20/1h", ""},
		{"create_post", "", "0/1m", ""},
		{"like", "", "20/1m", ""},
		{"create_pots", "", "20/1m", ""},
	} {
		table := &table{}
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Set(tt.activity, tt.tier, tt.limit, ""), nil })
		if got := string(table.Document); got != tt.kept || (err == nil) != (tt.kept != "") {
			t.Errorf("%s %s %q: %v, and the document is %s, want %s", tt.activity, tt.tier, tt.limit, err, got, tt.kept)
		}
	}
	if _, err := (Draft{}).Unset("content.writes", ""); err == nil {
		t.Error("a number that nobody set can be undone")
	}
}

func TestUnset(t *testing.T) {
	table := &table{}
	table.edit(t, func(s Draft) Draft {
		return s.Set("create_post", "gold", "30/1m", "").Set("pin", "", "", "shadow")
	})
	for _, step := range []struct {
		activity, tier string
		want           string // the error
	}{
		{"create_post", "", ""},
		{"create_post", "", "create_post has no live limit to undo"},
		{"pin", "gold", "pin for tier gold has no live limit to undo"},
		{"pin", "", ""},
	} {
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Unset(step.activity, step.tier) })
		if err == nil && step.want != "" || err != nil && err.Error() != step.want {
			t.Errorf("unset %s of %s: %v, want %q", step.tier, step.activity, err, step.want)
		}
	}
	if string(table.Document) != "{}" || table.Version != 3 {
		t.Errorf("%s at version %d is left, want nothing at 3", table.Document, table.Version)
	}
}

// Settings may have parts that the code cannot apply, such as a limit of
// another kind than its activity has. The other parts can be changed and
// forgotten. The bad parts can be unset.
func TestSettingsOfOtherCodeAreEdited(t *testing.T) {
	table := &table{Stored: live.Stored{Version: 7, Document: []byte(`{"activities": {"gone": {"limit": "1/1m"}, "lost": {"mode": "off"},
		"create_post": {"limit": "20/1h"}, "ingest": {"limit": "50/1h"}, "like": {"limit": "1/1m"}, "pin": {"limit": "log 50/12h"}},
		"grants": [{"userId": "u1", "role": "admin", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`)}}
	table.edit(t, func(s Draft) Draft { return s.Set("add_comment", "", "", "off") })
	if n, err := Forget(t.Context(), table, cricket.All, "u1", time.Now()); n != 1 || err != nil {
		t.Errorf("Forget = %d, %v", n, err)
	}
	for _, name := range []string{"gone", "lost", "create_post", "ingest", "like"} {
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Unset(name, "") })
		if err != nil {
			t.Errorf("unset %s: %v", name, err)
		}
	}
	if got := string(table.Document); got != `{"activities":{"add_comment":{"mode":"off"},"pin":{"limit":"log 50/12h"}}}` {
		t.Errorf("the settings are %s, want them empty", got)
	}
}

// An edit is refused as a whole if one of its changes can't apply.
func TestEachChangeOfAnEditIsChecked(t *testing.T) {
	for name, edit := range map[string]func(Draft) Draft{
		"a second activity": func(s Draft) Draft {
			return s.Set("create_post", "", "20/1m", "").Set("pin", "", "20/1m", "")
		},
		"a grant beside an activity": func(s Draft) Draft {
			return s.Set("create_post", "", "20/1m", "").Grant(live.Grant{UserID: "u1"}, time.Now())
		},
	} {
		table := &table{}
		err := Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return edit(s), nil })
		if err == nil || table.Version != 0 {
			t.Errorf("%s: %v and version %d, want an error and nothing stored", name, err, table.Version)
		}
	}
}

func TestTheBoundsOfGrants(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	grant := func(user, reason string) live.Grant {
		return live.Grant{UserID: user, Tier: "premium", Until: now.Add(time.Hour), Reason: reason}
	}
	table := &table{}
	add := func(g live.Grant) error {
		return Edit(t.Context(), table, cricket.All, Change{}, func(s Draft) (Draft, error) { return s.Grant(g, now), nil })
	}
	for i := range 200 {
		if err := add(grant(fmt.Sprint("user", i), strings.Repeat("r", 200))); err != nil {
			t.Fatalf("grant %d, with a reason of 200 characters: %v", i+1, err)
		}
	}
	if err := add(grant("one-more", "r")); err == nil || !strings.Contains(err.Error(), "there would be 201 grants, want at most 200") {
		t.Errorf("the 201st grant: %v", err)
	}
	if err := add(grant("user1", strings.Repeat("r", 201))); err == nil {
		t.Error("a reason of 201 characters is stored")
	}
}
