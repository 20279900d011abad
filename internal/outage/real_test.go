package outage_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/prove"
)

// A loss is one way in which a real guard loses its table. Its begin starts the
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

// Real guards lose a real table for a while, in each way. They stay within the
// limit, ask the table as seldom as they should, and return to it.
func realOutages(t *testing.T, figures *figures) {
	dynamotest.Endpoint(t) // skips the test if there is no table
	rows := make([][]string, len(losses))
	t.Run("all", func(t *testing.T) {
		t.Run("one throttled key", func(t *testing.T) {
			t.Parallel()
			prove.Progress("outage: real: one throttled key")
			realHotKey(t, figures)
		})
		for i, l := range losses {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				prove.Progress("outage: real: %s", l.name)
				rows[i] = l.run(t)
			})
		}
	})
	figures.real = rows
}

// run runs one loss with some instances.
func (l loss) run(t *testing.T) []string {
	table, proxy := dynamotest.Table(t), dynamotest.NewProxy(t)
	door := newDoor(t, proxy.URL())
	guards := make([]*guard, prove.Bound(1, 3))
	for i := range guards {
		guards[i] = startGuard(t, table, door.url(), l.env...)
	}
	each(t, guards, func(g *guard) error { return g.askUntilTable(t.Context(), "u0") })
	began := time.Now()
	end := l.begin(proxy, door)
	lost := time.Now()
	each(t, guards, func(g *guard) error {
		return g.askFor(t.Context(), prove.Bound(1500*time.Millisecond, 3*time.Minute), "u0", "u1", "u2")
	})
	if err := end(); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	each(t, guards, func(g *guard) error { return g.askUntilTable(t.Context(), "u0") })
	for _, g := range guards {
		g.count(t)
	}
	return l.judge(t, guards, began, lost, ended)
}

// judge holds the guards' answers to the contract and returns their figures. The
// outage began between began and lost.
func (l loss) judge(t *testing.T, guards []*guard, began, lost, ended time.Time) []string {
	byTable := ledger{}
	most := 0
	var s summary
	for i, g := range guards {
		alone := ledger{}
		asking := map[string]int{} // decisions that asked the table in the outage, by circuit
		probing := map[string]time.Duration{}
		for _, a := range g.answers {
			if a.Reason == "unavailable" {
				alone.add(a)
			} else {
				byTable.add(a)
			}
			if a.start.Before(lost) || a.start.After(ended) {
				continue
			}
			if a.byTable() {
				t.Errorf("instance %d, %v after the outage began: %+v, want no answer of the table", i, a.start.Sub(lost), a)
			}
			s.add(record{start: a.start, end: a.start.Add(a.took), requests: a.requests})
			if a.requests > 0 {
				key := ""
				if l.name == "throttled" {
					key = fmt.Sprint(a.user, " ", a.start.Unix()/60) // the item of one minute
				}
				if asking[key]++; asking[key] > 1 {
					s.later = max(s.later, a.took)
					probing[key] += a.took
				}
			}
		}
		most = max(most, alone.keep(t, fmt.Sprintf("instance %d alone", i)))
		// The first decision, and one in 5 s.
		could := 1 + int(ended.Sub(began)/probeEvery) + 1
		for circuit, n := range asking {
			if n > could {
				t.Errorf("instance %d %s: %d decisions asked the table in %v, want at most %d", i, circuit, n, ended.Sub(began), could)
			}
		}
		if len(asking) == 0 {
			t.Errorf("instance %d: no decision asked the table in the outage, want some", i)
		}
		for _, d := range probing {
			s.probing = max(s.probing, d.Seconds()/ended.Sub(began).Seconds())
		}
		last := g.answers[len(g.answers)-1]
		s.back = max(s.back, last.start.Add(last.took).Sub(ended))
	}
	byTable.keep(t, "the table")
	return append(s.cells(l.name), fmt.Sprintf("%d of %d", most, limit))
}

var realHead = append(slices.Clone(hoursHead), "allowed alone in a minute")

// The table throttles one user. It goes on deciding for the others.
func realHotKey(t *testing.T, figures *figures) {
	table, hot, rest := dynamotest.Table(t), dynamotest.NewProxy(t), dynamotest.NewProxy(t)
	g := startGuard(t, table, fork(t, "u0", hot, rest))
	users := []string{"u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9"}
	each(t, []*guard{g}, func(g *guard) error { return g.askUntilTable(t.Context(), "u0") })
	hot.Fail(math.MaxInt, dynamotest.Throttle)
	each(t, []*guard{g}, func(g *guard) error {
		return g.askFor(t.Context(), prove.Bound(2*time.Second, 3*time.Minute), users...)
	})
	hot.Heal()
	ended := time.Now()
	each(t, []*guard{g}, func(g *guard) error { return g.askUntilTable(t.Context(), "u0") })
	g.count(t)
	last := g.answers[len(g.answers)-1]

	var busy, others summary
	decided, missed, passedOver := 0, 0, 0
	for _, a := range g.answers {
		r := record{start: a.start, end: a.start.Add(a.took), requests: a.requests}
		switch {
		case a.start.After(ended):
		case a.user == "u0":
			busy.add(r)
		default:
			others.add(r)
			switch {
			case a.byTable():
				decided++
			case a.Reason == "unavailable" && a.requests > 0:
				missed++ // this machine was too busy to answer in a second
			case a.Reason == "unavailable":
				passedOver++
			}
		}
	}
	if missed == 0 && passedOver > 0 || decided == 0 {
		t.Errorf("for other keys than the throttled one, the table made %d decisions and was not asked for %d", decided, passedOver)
	}
	figures.hotKey = append(figures.hotKey,
		busy.hotCells("real: the throttled key", 0, last.start.Add(last.took).Sub(ended)),
		others.hotCells("real: 9 other keys", decided, 0))
}
