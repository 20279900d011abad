package command

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// An outcome is what one caller got for one request.
type outcome struct {
	asked
	took time.Duration
	err  error
}

// race sends as many requests as the limit allows, and one more for each caller.
// The callers run at the same time. Each sends one request after the other.
func (c *verifyCommand) race(ctx context.Context, ask asker, user guard.Request, limit int) (verdict, error) {
	v := verdict{Activity: c.Activity, Limit: int64(limit), Asked: limit + c.Callers}
	outcomes := make([]outcome, v.Asked)
	next := make(chan *outcome, v.Asked)
	for i := range outcomes {
		next <- &outcomes[i]
	}
	close(next)
	began := time.Now()
	var wg sync.WaitGroup
	for range c.Callers {
		wg.Go(func() {
			for o := range next {
				sent := time.Now()
				o.asked, o.err = ask(ctx, user)
				o.took = time.Since(sent)
				if o.err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	v.TookMs = milliseconds(time.Since(began))
	took := make([]float64, v.Asked)
	windows := make(map[int64]bool) // each has the whole limit
	for i, o := range outcomes {
		if o.err != nil {
			v.answered = answered(outcomes)
			return v, o.err
		}
		if o.Allowed {
			v.Allowed++
		}
		took[i] = milliseconds(o.took)
		switch {
		case o.Reason == string(ratelimit.Shadow):
			return v, fmt.Errorf("%s is in shadow mode, in which the guard refuses nobody: set the mode to enforce, and try again", c.Activity)
		case o.Limit == 0 && !o.Allowed: // a refusal as an error
			continue
		case o.Limit != v.Limit:
			return v, errLimitChanged
		}
		windows[o.WindowKey] = true
	}
	switch {
	case len(windows) > 1:
		return v, errWindowEnded
	case v.Allowed > limit && windows[0] && expired(outcomes):
		return v, errExpired
	}
	v.Exact = v.Allowed == limit
	slices.Sort(took)
	v.P50Ms, v.P99Ms = took[len(took)/2], took[len(took)*99/100]
	return v, nil
}

// expired reports whether an action was counted after an earlier one had expired.
// For example, a bucket 1/5s that counts at 12:00:00 is full again at 12:00:05,
// and can then count the next action. Both times are the guard's.
func expired(outcomes []outcome) bool {
	first, last := int64(math.MaxInt64), int64(0) // the first expiry, the last count
	for _, o := range outcomes {
		if o.At != 0 {
			first, last = min(first, o.ResetAt), max(last, o.At)
		}
	}
	return last >= first
}

// answered returns how many callers' requests were answered.
func answered(outcomes []outcome) (n int) {
	for _, o := range outcomes {
		if o.took > 0 && o.err == nil {
			n++
		}
	}
	return n
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
