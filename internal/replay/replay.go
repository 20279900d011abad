// Package replay says what a limit would have done to recorded traffic: it
// decides each request as a guard would have, at the time that the record gives,
// on the embedded store.
//
// Memory grows with the number of users, not with that of lines.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A Replay decides the requests of one activity. Lines of others are left out.
type Replay struct {
	Activity string
	Policy   ratelimit.Policy  // valid
	Progress func(lines int64) // told now and then how many lines were read; nil: nobody is
}

// now and then is every so many lines.
const nowAndThen = 1 << 14

// Run decides all of the traffic.
func (r *Replay) Run(ctx context.Context, t *Traffic) (*Report, error) {
	b := newBench(r.Policy)
	report := newReport(r)
	names := make(map[string]bool) // of other activities, a few
	err := r.each(ctx, t, func(line Line) error {
		if line.Activity != r.Activity {
			report.OtherActivities++
			if len(names) < 10 {
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

// each reads the traffic to its end.
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
		if n%nowAndThen != 0 {
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

// nothing is the error of traffic without a request of the activity.
func (t *Traffic) nothing(activity string, others map[string]bool) error {
	if len(others) == 0 {
		return fmt.Errorf("%s has no request in it, want lines of %s below that header, or JSON objects with these names", t.name, header)
	}
	return fmt.Errorf("%s has no request of the activity %+.40q, but of %s", t.name, activity, strings.Join(some(others), ", "))
}

// A bench is a limiter whose clock is set to each request's time.
type bench struct {
	policy  ratelimit.Policy
	limiter ratelimit.Limiter
	now     time.Time
	shift   int64 // milliseconds from the record's times to the limiter's
	asked   int64
}

// sixtyYears are whole days, so that windows that divide a day keep their
// borders. A sliding log counts from 2020 on, and a record may be older.
const sixtyYears = 21_915 * 24 * time.Hour

func newBench(p ratelimit.Policy) *bench {
	b := &bench{policy: p}
	b.limiter = ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return b.now }}
	if hasLog(p) {
		b.shift = sixtyYears.Milliseconds()
	}
	return b
}

func hasLog(p ratelimit.Policy) bool {
	switch p := p.(type) {
	case ratelimit.SlidingLog:
		return true
	case ratelimit.Several:
		for _, m := range p {
			if hasLog(m.Policy) {
				return true
			}
		}
	}
	return false
}

// check counts and decides a request.
func (b *bench) check(ctx context.Context, line Line) (ratelimit.Decision, error) {
	b.asked++
	b.now = time.UnixMilli(line.Time + b.shift)
	return b.limiter.Check(ctx, b.request(line.User))
}

// status is where a user stands at a time, in Unix milliseconds.
func (b *bench) status(ctx context.Context, user string, at int64) (ratelimit.Decision, error) {
	b.now = time.UnixMilli(at + b.shift)
	return b.limiter.Status(ctx, b.request(user))
}

// request is one of the user's, with an id that none had before.
func (b *bench) request(user string) ratelimit.Request {
	return ratelimit.Request{UserID: user, Policy: b.policy, Count: 1, ID: strconv.FormatInt(b.asked, 10)}
}
