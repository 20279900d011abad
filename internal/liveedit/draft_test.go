package liveedit_test

import (
	"errors"
	"testing"

	guards "github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/limits"
)

// A deploy has changed the window, so the live limit applies no more. Operators
// can still switch the activity off, and change its tiers.
func TestAPartThatDoesNotApplyDoesNotBlockTheOthers(t *testing.T) {
	table := &table{document: []byte(`{"activities": {"act": {"limit": "20/1m", "tiers": {"old": "30/1m"}}}}`), version: 1}
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
	if got := string(table.document); got != `{"activities":{"act":{"limit":"20/1m","tiers":{"new":"40/1h","old":"30/1m"},"mode":"off"}}}` {
		t.Errorf("the settings are %s", got)
	}
}

// An edit of a tier does not change the settings that it is compared with, so a
// limit of another kind is refused also if the tier already has a live limit.
func TestAChangedTierIsChecked(t *testing.T) {
	table := &table{}
	table.edit(t, func(s Draft) Draft { return s.Set("create_post", "premium", "30/1m", "") })
	before := string(table.document)
	err := Edit(t.Context(), table, limits.All, Change{}, func(s Draft) (Draft, error) { return s.Set("create_post", "premium", "log 5/1h", ""), nil })
	if err == nil || string(table.document) != before {
		t.Errorf("%v, and the settings are %s, want an error and %s", err, table.document, before)
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
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Draft) (Draft, error) { return s.Set(tt.activity, tt.tier, tt.limit, ""), nil })
		if got := string(table.document); got != tt.kept || (err == nil) != (tt.kept != "") {
			t.Errorf("%s %s %q: %v, and the document is %s, want %s", tt.activity, tt.tier, tt.limit, err, got, tt.kept)
		}
	}
	if _, err := (Draft{}).Unset("content.writes", ""); err == nil {
		t.Error("a number that nobody set can be undone")
	}
}
