package ratelimit_test

import (
	"math/rand"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// A load is what callers ask of one key, in virtual time.
type load struct {
	text      string
	instances int
	pace      float64 // actions a second
	counts    []int64 // one of them each time
	moves     bool    // each second, all requests come to another instance
}

// shares returns how much of what an ordinary limit of the same numbers admits is admitted
// by a prepaid one in two minutes.
func (o load) share(t *testing.T, seed int64) float64 {
	t.Helper()
	p := leased(o.text)
	random, c := rand.New(rand.NewSource(seed)), newClock()
	store, instances := new(memstore.Store), make([]*Limiter, o.instances)
	for i := range instances {
		instances[i] = &Limiter{Store: store, Memory: NewMemory(mib), Now: c.now}
	}
	var mean, admitted, fitted float64
	for _, n := range o.counts {
		mean += float64(n) / float64(len(o.counts))
	}
	truth, window := policy.State(nil), int64(0)
	for id := 0; c.now().Sub(start) < 2*time.Minute; id++ {
		c.add(time.Duration(random.ExpFloat64() * float64(time.Second) * mean / o.pace))
		i := random.Intn(o.instances)
		if o.moves {
			i = int(c.now().Unix()) % o.instances
		}
		n := o.counts[random.Intn(len(o.counts))]
		r := call(p, id)
		if r.Count = n; mustCheck(t, instances[i], r).Allowed && c.now().Sub(start) > time.Minute {
			admitted += float64(n)
		}
		now := c.now().UnixMilli()
		if w, _ := p.Item(now); w != window {
			truth, window = policy.State(nil), w
		}
		if u, ok := p.Take(now, n, 1, truth); ok {
			u.ApplyTo(&truth)
			if c.now().Sub(start) > time.Minute {
				fitted += float64(n)
			}
		}
	}
	return admitted / fitted
}

// On a living instance, a prepaid limit admits nearly what an ordinary one does, whatever the
// counts are: what is left of a lease is handed out beside the next one.
func TestABusyKeyGetsItsWholeLimit(t *testing.T) {
	testkit.Long.Need(t)
	for _, o := range []struct {
		load

		least float64 // percent
	}{
		{load{"bucket 1000/1s burst 2000", 1, 2000, []int64{1}, false}, 98},
		{load{"bucket 1000/1s burst 2000", 1, 2000, []int64{10}, false}, 98},
		{load{"bucket 1000/1s burst 2000", 1, 1000, []int64{1, 60}, false}, 98},
		{load{"bucket 250/1s burst 600", 1, 500, []int64{10}, false}, 98},
		{load{"bucket 250/1s burst 600", 1, 500, []int64{1, 60}, false}, 94},
		{load{"bucket 100/1s burst 1000", 1, 200, []int64{10}, false}, 98},
		{load{"sliding 6000/1m", 1, 200, []int64{10}, false}, 98},
		{load{"6000/1m", 1, 110, []int64{1, 60}, false}, 98},
		{load{"6000/1m", 20, 110, []int64{1}, true}, 90},
	} {
		if got := 100 * o.share(t, 1); got < o.least {
			t.Errorf("%+v: %.1f %% of what an ordinary limit admits, want at least %.0f", o.load, got, o.least)
		} else {
			t.Logf("%+v: %.1f %%", o.load, got)
		}
	}
}
