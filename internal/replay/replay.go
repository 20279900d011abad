// Package replay shows what a limit would have done to recorded traffic.
//
// [Replay.Run] reads [Traffic] and decides each request as a guard would have
// decided it at the recorded time. It returns a [Report] with the figures.
// [Replay.Timeline] decides the requests of one user once more and keeps the
// details, and package plot draws them.
//
// For example, the traffic is three requests of one user within a minute, and
// the limit is 2/1m. The report has 2 requests allowed and 1 refused.
//
// The counts are kept in memory. The memory grows with the number of users, not
// with the number of lines.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
)

// A Replay decides the requests of one activity. It skips lines of other
// activities.
type Replay struct {
	Activity string
	Policy   policy.Policy     // not zero
	Progress func(lines int64) // if set, called every 16,384 lines with the number of lines read so far
}

// progressLines is how many lines are read between two calls of Progress. Then
// the context is checked too.
const progressLines = 1 << 14

// otherNames is the most other activities that an error names.
const otherNames = 10

// Run decides all requests of the traffic.
func (r *Replay) Run(ctx context.Context, t *Traffic) (*Report, error) {
	d := newDecider(r.Policy, false)
	report := newReport(r)
	names := make(map[string]bool) // of other activities
	err := r.each(ctx, t, func(line Line) error {
		if line.Activity != r.Activity {
			report.OtherActivities++
			if len(names) < otherNames {
				names[line.Activity] = true
			}
			return nil
		}
		report.count(line, d.check(line))
		return nil
	})
	report.OutOfOrder, report.OutOfOrderMs = t.Back, t.Furthest.Milliseconds()
	report.finish()
	if err == nil && report.Requests == 0 {
		err = t.nothing(r.Activity, names)
	}
	return report, err
}

// each calls do with each line, until the end or an error.
func (r *Replay) each(ctx context.Context, t *Traffic, do func(Line) error) error {
	for n := int64(1); ; n++ {
		line, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(line)
		}
		if err != nil {
			return err
		}
		if n%progressLines != 0 {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.Progress != nil {
			r.Progress(n)
		}
	}
}

// nothing returns the error for traffic without a request of the activity.
func (t *Traffic) nothing(activity string, others map[string]bool) error {
	if len(others) == 0 {
		return fmt.Errorf("%s contains no requests, want the header %s and lines below it, or JSON objects with these names", t.name, header)
	}
	return fmt.Errorf("%s has no request of the activity %+.40q, only of %s", t.name, activity, strings.Join(slices.Sorted(maps.Keys(others)), ", "))
}
