package live_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
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
		f := &Follower{Table: &table{kept: kept{document: []byte(document), version: 1}}, Guards: limits.All, Log: slog.New(slog.NewJSONHandler(&log, nil))}
		err := f.Read(t.Context())
		if strings.Contains(log.String(), canary) || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%s: log %s, error %v", document, &log, err)
		}
	}
}
