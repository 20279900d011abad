package live_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	app "github.com/cric-talk/guards/limits"
)

// A table keeps settings in memory. Its eventually consistent reads return
// stale, if stale is set.
type table struct {
	kept
	stale    *kept
	err      error
	failFrom int           // reads from this one on fail; 0: none
	slow     time.Duration // for each read
	reads    int
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

// put changes the document to these overrides, a JSON object.
func (t *table) put(overrides string) {
	t.kept = kept{fmt.Appendf(nil, `{"activities": %s}`, overrides), t.version + 1}
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
