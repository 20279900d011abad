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
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
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
	b := newBench(r.Policy)
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
		d, err := b.check(ctx, line)
		if err == nil {
			report.count(line, d)
		}
		return err
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

// A bench decides requests as a guard would, on a store in memory. Its clock
// shows the time of the request.
type bench struct {
	policy  policy.Policy
	limiter ratelimit.Limiter
	now     time.Time
	asked   int64
}

func newBench(p policy.Policy) *bench {
	b := &bench{policy: p}
	b.limiter = ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return b.now }}
	return b
}

// check counts and decides a request.
func (b *bench) check(ctx context.Context, line Line) (ratelimit.Decision, error) {
	b.now = time.UnixMilli(line.Time)
	return b.limiter.Check(ctx, b.request(line.User))
}

// status returns the figures of a user at the time at, in Unix milliseconds.
func (b *bench) status(ctx context.Context, user string, at int64) (ratelimit.Decision, error) {
	b.now = time.UnixMilli(at)
	return b.limiter.Status(ctx, b.request(user))
}

// request returns a request of a user, with an id that no other request has.
func (b *bench) request(user string) ratelimit.Request {
	b.asked++
	return ratelimit.Request{UserID: user, Policy: b.policy, Count: 1, ID: strconv.FormatInt(b.asked, 10), Fresh: true}
}
