package live_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A mode, a limit and the limit of each tier apply separately. A part that the
// code can't follow keeps its last good value, or the code's, and is reported.
// The code has 10/1m, and premium 20/1m.
func TestEachPartOfAnOverrideAppliesAlone(t *testing.T) {
	for _, tt := range []struct {
		name      string
		documents []string // of create_post, one after the other
		inForce   string   // mode, limit, and the limits of the tiers
		reports   []string
	}{
		{
			"a deploy changed the window: the mode applies",
			[]string{`{"limit": "5/1h", "tiers": {"premium": "9/1h"}, "mode": "off"}`},
			`off 10/1m premium=20/1m`, []string{`create_post: a live limit`, `create_post: tier "premium": a live limit`},
		},
		{
			"a limit of another window: the tiers apply",
			[]string{`{"limit": "5/1h", "tiers": {"premium": "9/1m", "gold": "8/1m"}}`},
			` 10/1m gold=8/1m premium=9/1m`, []string{`create_post: a live limit`},
		},
		{
			"one tier of another window: the rest applies",
			[]string{`{"limit": "5/1m", "tiers": {"premium": "9/1h", "gold": "8/1m"}, "mode": "shadow"}`},
			`shadow 5/1m gold=8/1m premium=20/1m`, []string{`tier "premium"`},
		},
		{
			"a new tier that can't apply is the ordinary limit",
			[]string{`{"limit": "5/1m", "tiers": {"gold": "log 8/1m"}}`},
			` 5/1m premium=20/1m`, []string{`tier "gold"`},
		},
		{
			"a mode that does not exist: the limits apply",
			[]string{`{"limit": "5/1m", "mode": "on"}`},
			` 5/1m premium=20/1m`, []string{`create_post: mode is "on"`},
		},
		{
			"each part keeps its own last good value",
			[]string{
				`{"limit": "5/1m", "tiers": {"premium": "9/1m", "gold": "8/1m"}, "mode": "shadow"}`,
				`{"limit": "x", "tiers": {"premium": "x", "gold": "7/1m"}, "mode": "x"}`,
				`{"limit": "y", "tiers": {"premium": "y", "gold": "y"}, "mode": "off"}`,
			},
			`off 5/1m gold=7/1m premium=9/1m`, []string{`limit is "x"`, `limit is "y"`, `tier "premium"`, `tier "gold"`, `mode is "x"`},
		},
		{
			"a part that was undone in between keeps the code's",
			[]string{`{"limit": "5/1m", "tiers": {"premium": "9/1m", "gold": "8/1m"}, "mode": "off"}`, `{"tiers": {"silver": "7/1m"}}`, `{"limit": "x", "tiers": {"premium": "x", "gold": "x"}, "mode": "x"}`},
			` 10/1m premium=20/1m`, []string{`mode is "x"`, `tier "gold"`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table, log := &table{}, new(bytes.Buffer)
			f := &Follower{Source: table, Guards: cricket.All, Log: slog.New(slog.NewTextHandler(log, nil))}
			for i, document := range tt.documents {
				table.Stored = Stored{Version: int64(i + 1), Document: fmt.Appendf(nil, `{"activities": {"create_post": %s}}`, document)}
				if err := f.Read(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := inForce(t, f, "create_post"); got != tt.inForce {
				t.Errorf("%q is in force, want %q", got, tt.inForce)
			}
			for _, want := range tt.reports {
				if !strings.Contains(strings.ReplaceAll(log.String(), `\"`, `"`), want) {
					t.Errorf("the log does not report %s:\n%s", want, log)
				}
			}
		})
	}
}

// inForce returns an activity's mode and limits as a text.
func inForce(t *testing.T, f *Follower, name string) string {
	t.Helper()
	a, mode := f.Limits().Activity(activityOf(t, name))
	var text strings.Builder
	text.WriteString(mode + " " + a.Limit.String())
	for _, tier := range slices.Sorted(maps.Keys(a.Tiers)) {
		text.WriteString(" " + tier + "=" + a.Tiers[tier].String())
	}
	return text.String()
}
