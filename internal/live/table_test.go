package live_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	app "github.com/cric-talk/guards/limits"
)

// A table keeps settings in memory. Its eventually consistent reads return
// stale, if stale is set.
type table struct {
	kept
	stale    *kept
	history  []Change
	err      error
	failFrom int           // reads from this one on fail; 0: none
	slow     time.Duration // for each read
	reads    int
	race     func() // runs once, before a change
}

type kept struct {
	document []byte
	version  int64
}

func (t *table) Settings(_ context.Context, consistent bool) ([]byte, int64, error) {
	t.reads++
	time.Sleep(t.slow)
	if t.failFrom > 0 && t.reads >= t.failFrom {
		return nil, 0, errors.New("away")
	}
	if t.stale != nil && !consistent {
		return t.stale.document, t.stale.version, t.err
	}
	return t.document, t.version, t.err
}

func (t *table) ChangeSettings(_ context.Context, version int64, document []byte, c Change) error {
	if race := t.race; race != nil {
		t.race = nil
		race()
	}
	if version != t.version {
		return ErrConflict
	}
	t.kept = kept{document, c.Version}
	t.history = slices.Insert(t.history, 0, c)
	return t.err
}

func (t *table) SettingsHistory(context.Context) ([]Change, error) { return t.history, t.err }

// edit changes the settings, and fails the test on an error.
func (t *table) edit(tb testing.TB, edit func(Settings) Settings) {
	tb.Helper()
	err := Edit(context.Background(), t, app.All, Change{By: "test"}, func(s Settings) (Settings, error) { return edit(s), nil })
	if err != nil {
		tb.Fatal(err)
	}
}

func activityOf(tb testing.TB, name string) limits.Activity {
	tb.Helper()
	for _, g := range app.All {
		if a, ok := g.Activity(name); ok {
			return a
		}
	}
	tb.Fatalf("no activity %s", name)
	return limits.Activity{}
}
