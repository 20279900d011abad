package replay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	. "github.com/cric-talk/guards/internal/workbench/replay"
)

// endless is the traffic of a few users. It makes each line when it is read.
type endless struct {
	lines, last int64
	left        strings.Reader
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left.Len() == 0 {
		if e.lines++; e.lines > e.last {
			return 0, io.EOF
		}
		line := fmt.Sprintf("%d,u%d,act\n", start+e.lines*50, e.lines%50)
		if e.lines == 1 {
			line = "time,user,activity\n" + line
		}
		e.left.Reset(line)
	}
	return e.left.Read(p)
}

// Several shards decide the requests of their users at the same time, and drop what has expired. Each of
// the 50 users makes 24 requests a minute, for 166 minutes and 16 requests. 20 a minute are allowed. The
// lines in a queue differ at each look, so the least of the first half is compared with the least of the second.
func TestMemoryDoesNotGrowWithTheNumberOfLines(t *testing.T) {
	testkit.Long.Need(t)
	for limit, allowed := range map[string]int64{"20/1m": 166*50*20 + 801, "log 20/1m": 166*50*20 + 800} {
		var used []int64
		r := &Replay{Activity: "act", Policy: policy.Must(limit), Progress: func(int64) {
			used = append(used, testkit.HeapInUse())
		}}
		report, err := r.Run(t.Context(), read(&endless{last: 200_000}))
		if err != nil || report.Requests != 200_000 || report.Allowed != allowed || report.HeldUp != 50 || len(used) != 12 {
			t.Fatal(report, err, len(used))
		}
		if limit == "20/1m" { // a search keeps its copy of the requests in a file
			used = nil
			if got, err := r.Suggest(t.Context(), read(&endless{last: 200_000}), 999_000, spoolFile(t), nil); err != nil || got.Requests != 200_000 || len(used) != 12 {
				t.Fatal(got, err, len(used))
			}
		}
		if first, last := slices.Min(used[:6]), slices.Min(used[6:]); last > first+1<<20 {
			t.Errorf("%s: %d bytes are in use within %d lines, %d within %d", limit, first, 6<<14, last, 12<<14)
		}
	}
}

func TestReplayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &Replay{Activity: "act", Policy: policy.Must("20/1m"), Progress: func(int64) { cancel() }}
	if _, err := r.Run(ctx, read(&endless{last: 1 << 40})); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
}
