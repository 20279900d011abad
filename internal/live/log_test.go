package live_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/limits"
)

// The document can contain user ids in any place. None of them reaches the log.
func TestTheLogRepeatsNothingOfTheDocument(t *testing.T) {
	const canary = "canary-user-4711"
	for _, document := range []string{
		`{"grants":[{"userId":"` + canary + `","until":"` + canary + `"}]}`,
		`{"` + canary + `":1}`,
		`{"activities":{"` + canary + `":{"limit":"20/1m"}}}`,
	} {
		var log bytes.Buffer
		f := &Follower{Source: &table{kept: kept{document: []byte(document), version: 1}}, Guards: limits.All, Log: slog.New(slog.NewJSONHandler(&log, nil))}
		err := f.Read(t.Context())
		if strings.Contains(log.String(), canary) || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%s: log %s, error %v", document, &log, err)
		}
	}
}

// Each look that fails has one line in the log, and one that succeeds has none.
func TestALookThatFailsIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := newBench(t), new(bytes.Buffer)
		b.Log = slog.New(slog.NewTextHandler(log, nil))
		b.set("5/1m")
		for _, tt := range []struct {
			err   error
			lines int
		}{{errors.New("away"), 1}, {nil, 1}, {&DocumentError{Cause: errors.New("canary-user-4711")}, 2}, {nil, 2}} {
			b.err = tt.err
			time.Sleep(30 * time.Second)
			b.Refresh(t.Context(), 0)()
			if got := strings.Count(log.String(), `level=WARN msg="live limits not followed" not=read`); got != tt.lines || strings.Contains(log.String(), "canary") {
				t.Errorf("after %v: %d lines, want %d:\n%s", tt.err, got, tt.lines, log)
			}
		}
	})
}
