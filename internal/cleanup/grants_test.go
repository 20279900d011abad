package cleanup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
)

// A document holds live limits. Reads return its content or err, and every
// change fails with changed.
type document struct {
	liveedit.Table

	content      string
	err, changed error
}

func (d document) Settings(context.Context, bool) ([]byte, int64, error) {
	return []byte(d.content), 1, d.err
}

func (d document) ChangeSettings(context.Context, int64, []byte, liveedit.Change) error {
	return d.changed
}

// An erasure whose time is over leaves the grants to the run that deletes the
// last items. So an error about grants never hides that items are left.
func TestAnUnfinishedErasureDoesNotTouchGrants(t *testing.T) {
	unfinished := func(context.Context) (table.Swept, error) { return table.Swept{Deleted: 7}, nil }
	c := &Cleanup{Table: &fake{run: unfinished}, Live: document{err: errors.New("it was read")}, Log: slog.New(slog.DiscardHandler)}
	a, err := c.Run(t.Context(), Request{UserID: canary})
	if err != nil || a.Finished || a.Deleted != 7 {
		t.Errorf("%+v, %v, want 7 deleted items, unfinished, and no error", a, err)
	}
}

// An erasure that leaves the grants of the user, or of the subject, in the table is an
// error. It says that the items are gone, and neither the error nor the log names whose.
func TestAnErasureThatLeavesGrantsSaysSo(t *testing.T) {
	for whose, one := range map[string]struct{ key, event string }{
		"user":    {canary, `{"userId": "` + canary + `"}`},
		"subject": {limits.SubjectID("room", canary), `{"subject": {"room": "` + canary + `"}}`},
	} {
		granted := `{"grants": [{"userId": "` + one.key + `", "tier": "premium", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`
		for name, tt := range map[string]struct {
			live liveedit.Table
			want string
		}{
			"edited by hand": {document{content: `{"grants": "` + canary + `"}`}, "the document of the live limits has a wrong type or an unknown name"},
			"throttled":      {document{err: &ratelimit.StoreError{What: "the table is throttled", Err: errors.New("arn:secret")}}, "the table is throttled"},
			"busy":           {document{content: granted, changed: liveedit.ErrConflict}, liveedit.ErrConflict.Error()},
		} {
			var log bytes.Buffer
			c := &Cleanup{Table: &fake{run: done}, Live: tt.live, Log: slog.New(slog.NewJSONHandler(&log, nil))}
			_, err := c.Invoke(t.Context(), []byte(one.event))
			want := "the " + whose + "'s items are deleted, but the " + whose + "'s grants are not: " + tt.want
			if e, ok := errors.AsType[*input.Unavailable](err); !ok || e.Error() != want {
				t.Errorf("%s:\n got %v\nwant %s", name, err, want)
			}
			if line := log.String(); !strings.Contains(line, want) || strings.Contains(line, canary) || strings.Contains(line, "arn") != (name == "throttled") {
				t.Errorf("%s: the log is %s", name, line)
			}
		}
	}
}
