package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/guard"
)

// An outcome is what one caller got for one request.
type outcome struct {
	asked
	took time.Duration
	err  error
}

// race sends the limit and one request more for each caller. All callers ask at
// the same time, one request after the other.
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
		if o.Limit == 0 {
			continue
		}
		windows[o.WindowKey] = true
		if o.Limit != v.Limit {
			return v, errLimitChanged
		}
	}
	if len(windows) > 1 {
		return v, errWindowEnded
	}
	v.Exact = v.Allowed == limit
	slices.Sort(took)
	v.P50Ms, v.P99Ms = took[len(took)/2], took[len(took)*99/100]
	return v, nil
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
