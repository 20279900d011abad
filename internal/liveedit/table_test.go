package liveedit_test

import (
	"context"
	"slices"
	"testing"

	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A table keeps settings in memory.
type table struct {
	live.Stored
	blocks  live.Stored
	history []Change
	race    func() // runs once, before a change
}

func (t *table) Settings(context.Context, bool) (live.Stored, error) { return t.Stored, nil }

func (t *table) Blocks(context.Context, bool) (live.Stored, error) { return t.blocks, nil }

func (t *table) ChangeSettings(_ context.Context, before int64, after live.Stored, c Change) error {
	return t.change(&t.Stored, before, after, c)
}

func (t *table) ChangeBlocks(_ context.Context, before int64, after live.Stored, c Change) error {
	return t.change(&t.blocks, before, after, c)
}

func (t *table) Note(_ context.Context, c Change) error {
	t.history = append([]Change{c}, t.history...)
	return nil
}

func (t *table) change(now *live.Stored, before int64, after live.Stored, c Change) error {
	if race := t.race; race != nil {
		t.race = nil
		race()
	}
	if before != now.Version {
		return ErrConflict
	}
	*now = after
	t.history = slices.Insert(t.history, 0, c)
	return nil
}

func (t *table) SettingsHistory(context.Context) ([]Change, error) { return t.history, nil }

// edit changes the settings, and fails the test on an error.
func (t *table) edit(tb testing.TB, edit func(Draft) Draft) {
	tb.Helper()
	err := Edit(context.Background(), t, cricket.All, Change{By: "test"}, func(s Draft) (Draft, error) { return edit(s), nil })
	testkit.OK(tb, err)
}
