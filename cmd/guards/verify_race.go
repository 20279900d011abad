package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/guard"
)

// A tally collects the outcomes of all callers.
type tally struct {
	mu      sync.Mutex
	took    []float64 // milliseconds
	allowed int
	windows map[int64]bool // the windows that decided; each has the whole limit
	failed  error          // the first failure
}

// add adds the outcome of one request.
func (t *tally) add(a asked, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took = append(t.took, milliseconds(took))
	if err == nil {
		t.windows[a.WindowKey] = true
	} else if t.failed == nil {
		t.failed = err
	}
	if a.Allowed {
		t.allowed++
	}
}

// race sends the limit and one request more for each caller. All callers ask at
// the same time, one request after the other.
func (c *verifyCommand) race(ctx context.Context, ask asker, user guard.Request, limit int) (verdict, error) {
	v := verdict{Activity: c.Activity, Limit: int64(limit), Asked: limit + c.Callers}
	next := make(chan struct{}, v.Asked)
	for range v.Asked {
		next <- struct{}{}
	}
	close(next)
	all := &tally{windows: make(map[int64]bool)}
	began := time.Now()
	var wg sync.WaitGroup
	for range c.Callers {
		wg.Go(func() {
			for range next {
				sent := time.Now()
				a, err := ask(ctx, user)
				all.add(a, time.Since(sent), err)
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	v.TookMs = milliseconds(time.Since(began))
	v.Allowed, v.Exact = all.allowed, all.allowed == limit
	slices.Sort(all.took)
	v.P50Ms, v.P99Ms = all.took[len(all.took)/2], all.took[len(all.took)*99/100]
	if all.failed == nil && len(all.windows) > 1 {
		return v, errWindowEnded
	}
	return v, all.failed
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
