package liveedit_test

import (
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/limits"
)

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
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Draft) (Draft, error) { return s.Unset(step.activity, step.tier) })
		if err == nil && step.want != "" || err != nil && err.Error() != step.want {
			t.Errorf("unset %s of %s: %v, want %q", step.tier, step.activity, err, step.want)
		}
	}
	if string(table.document) != "{}" || table.version != 3 {
		t.Errorf("%s at version %d is left, want nothing at 3", table.document, table.version)
	}
}

// Settings may have parts that the code cannot apply, such as a limit of
// another kind than its activity has. The other parts can be changed and
// forgotten. The bad parts can be unset.
func TestSettingsOfOtherCodeAreEdited(t *testing.T) {
	table := &table{version: 7, document: []byte(`{"activities": {"gone": {"limit": "1/1m"}, "lost": {"mode": "off"},
		"create_post": {"limit": "20/1h"}, "ingest": {"limit": "50/1h"}, "like": {"limit": "1/1m"}, "pin": {"limit": "log 50/12h"}},
		"grants": [{"userId": "u1", "role": "admin", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`)}
	table.edit(t, func(s Draft) Draft { return s.Set("add_comment", "", "", "off") })
	if n, err := Forget(t.Context(), table, limits.All, "u1", time.Now()); n != 1 || err != nil {
		t.Errorf("Forget = %d, %v", n, err)
	}
	for _, name := range []string{"gone", "lost", "create_post", "ingest", "like"} {
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Draft) (Draft, error) { return s.Unset(name, "") })
		if err != nil {
			t.Errorf("unset %s: %v", name, err)
		}
	}
	if got := string(table.document); got != `{"activities":{"add_comment":{"mode":"off"},"pin":{"limit":"log 50/12h"}}}` {
		t.Errorf("the settings are %s, want them empty", got)
	}
}
