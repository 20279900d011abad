package liveedit_test

import (
	"errors"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
)

// A live lockout of a group is set for the group. An activity's own live limit has the group's
// lockout of now, and the group's stays as long as an activity has it in its own live limit.
func TestTheLockoutOfAGroupIsSetForTheGroup(t *testing.T) {
	page, err := limits.Link([]guards.Guard{{Name: "g", Message: "m", Activities: []guards.Activity{
		{Name: "sign_in", Group: "door", Limit: "day: 20/1d, try: lockout 5/15m for 30m"},
		{Name: "unlock", Group: "door", Limit: "try: lockout 5/15m for 30m"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	table := &table{}
	for i, step := range []struct {
		name, limit string // empty: it is undone
		refused     bool
	}{
		{name: "sign_in", limit: "day: 30/1d, try: lockout 4/15m for 30m", refused: true},
		{name: "sign_in", limit: "day: 30/1d, try: lockout 5/15m for 30m"},
		{name: "door.try", limit: "lockout 4/15m for 20m", refused: true}, // sign_in has its own live limit
		{name: "sign_in"},
		{name: "door.try", limit: "lockout 4/15m for 20m"},
		{name: "sign_in", limit: "day: 30/1d, try: lockout 5/15m for 30m", refused: true},
		{name: "sign_in", limit: "day: 30/1d, try: lockout 4/15m for 20m"},
		{name: "door.try", refused: true},
		{name: "sign_in"},
		{name: "door.try"},
	} {
		err := Edit(t.Context(), table, page, Change{}, func(d Draft) (Draft, error) {
			if step.limit == "" {
				return d.Unset(step.name, "")
			}
			return d.Set(step.name, "", step.limit, ""), nil
		})
		if refused := errors.Is(err, live.ErrGroupLockout); refused != step.refused || !refused && err != nil {
			t.Errorf("step %d, %s %q: %v, want a refusal: %v", i, step.name, step.limit, err, step.refused)
		}
	}
}
