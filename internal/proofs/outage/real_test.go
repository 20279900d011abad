package outage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A loss is one way for a real guard to lose its table. Its begin starts the
// loss and returns the func that ends it.
type loss struct {
	name  string
	env   []string
	begin func(*dynamotest.Proxy, *door) (end func() error)
}

func failing(f dynamotest.Fault) func(*dynamotest.Proxy, *door) func() error {
	return func(p *dynamotest.Proxy, _ *door) func() error {
		p.Fail(math.MaxInt, f)
		return func() error { p.Heal(); return nil }
	}
}

var losses = []loss{
	{"refused connections", nil, func(_ *dynamotest.Proxy, d *door) func() error { d.close(); return d.open }},
	{"black hole", nil, failing(dynamotest.HangBefore)},
	{"black hole, ON_OUTAGE=deny", []string{"ON_OUTAGE=deny"}, failing(dynamotest.HangBefore)},
	{"slow: a request takes 1.5 s", nil, func(p *dynamotest.Proxy, _ *door) func() error {
		p.Do(func(string) dynamotest.Fault { time.Sleep(1500 * time.Millisecond); return dynamotest.Pass })
		return func() error { p.Heal(); return nil }
	}},
	{"throttled", nil, failing(dynamotest.Throttle)},
}

// An outing is a real outage with its guards.
type outing struct {
	loss
	proxy              *dynamotest.Proxy
	door               *door
	guards             []*guard
	began, lost, ended time.Time // it began between began and lost
}

// Real guards lose a real table for a while, in each way at the same time. They
// stay within the limit, ask the table as seldom as they should, and return to
// it.
func realOutages(t *testing.T, figures *figures) {
	dynamotest.Endpoint(t) // skips the test if there is no table
	prove.Progress("outage: real guards lose a real table")
	var all []*outing
	for _, l := range losses {
		all = append(all, l.start(t))
	}
	var running sync.WaitGroup
	failed := make([]error, len(all))
	for i, o := range all {
		running.Go(func() { failed[i] = o.run(t.Context()) })
	}
	running.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		figures.real = append(figures.real, o.judge(t))
	}
}

// start starts the guards of an outage.
func (l loss) start(t *testing.T) *outing {
	o := &outing{loss: l, proxy: dynamotest.NewProxy(t)}
	o.door = newDoor(t, o.proxy)
	table := dynamotest.Table(t)
	for range prove.Bound(1, 3) {
		o.guards = append(o.guards, startGuard(t, table, o.door.url(), l.env...))
	}
	return o
}

// run takes the table away and gives it back.
func (o *outing) run(ctx context.Context) error {
	until := func(g *guard) error { return g.askUntilTable(ctx, "u0") }
	if err := each(o.guards, until); err != nil {
		return err
	}
	o.began = time.Now()
	end := o.begin(o.proxy, o.door)
	o.lost = time.Now()
	err := each(o.guards, func(g *guard) error {
		return g.askFor(ctx, prove.Bound(1500*time.Millisecond, 3*time.Minute), "u0", "u1", "u2")
	})
	if err = errors.Join(err, end()); err != nil {
		return err
	}
	o.ended = time.Now()
	return each(o.guards, until)
}

// judge holds the guards' answers to the contract and returns their figures.
func (o *outing) judge(t *testing.T) []string {
	byTable := ledger{}
	most := 0
	var s summary
	for i, g := range o.guards {
		g.count(t)
		alone := ledger{}
		asking := map[string]int{} // decisions that asked the table in the outage, by circuit
		probing := map[string]time.Duration{}
		for _, a := range g.answers {
			if a.Reason == "unavailable" {
				alone.add(a)
			} else {
				byTable.add(a)
			}
			if a.start.Before(o.lost) || a.start.After(o.ended) {
				continue
			}
			if a.byTable() {
				t.Errorf("%s: instance %d, %v after the outage began: %+v, want no answer of the table", o.name, i, a.start.Sub(o.lost), a)
			}
			s.add(record{start: a.start, end: a.start.Add(a.took), requests: a.requests})
			if a.requests > 0 {
				key := ""
				if o.name == "throttled" {
					key = a.user
				}
				if asking[key]++; asking[key] > 1 {
					s.later = max(s.later, a.took)
					probing[key] += a.took
				}
			}
		}
		most = max(most, alone.keep(t, fmt.Sprintf("%s: instance %d alone", o.name, i)))
		// The first decision, and one in 5 s.
		could := 1 + int(o.ended.Sub(o.began)/probeEvery) + 1
		for circuit, n := range asking {
			if n > could {
				t.Errorf("%s: instance %d %s: %d decisions asked the table in %v, want at most %d", o.name, i, circuit, n, o.ended.Sub(o.began), could)
			}
		}
		if len(asking) == 0 {
			t.Errorf("%s: instance %d: no decision asked the table in the outage, want some", o.name, i)
		}
		for _, d := range probing {
			s.probing = max(s.probing, d.Seconds()/o.ended.Sub(o.began).Seconds())
		}
		last := g.answers[len(g.answers)-1]
		s.back = max(s.back, last.start.Add(last.took).Sub(o.ended))
	}
	byTable.keep(t, o.name+": the table")
	return append(s.cells(o.name), fmt.Sprintf("%d of %d", most, limit))
}

var realHead = append(slices.Clone(hoursHead), "allowed alone in a minute")
