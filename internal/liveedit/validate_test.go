package liveedit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/limits"
)

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
		err := Edit(t.Context(), table, limits.All, Change{}, func(s Draft) (Draft, error) { return edit(s), nil })
		if err == nil || table.version != 0 {
			t.Errorf("%s: %v and version %d, want an error and nothing stored", name, err, table.version)
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
		return Edit(t.Context(), table, limits.All, Change{}, func(s Draft) (Draft, error) { return s.Grant(g, now), nil })
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
