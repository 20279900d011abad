package outage_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A slowness is a table that answers each request, after some time.
type slowness struct {
	timeout, takes time.Duration // DECISION_TIMEOUT, and the time of a request
	instances      int
	lost           bool // one answer in ten never comes
}

// slownesses returns the rows of the proof. Without long bounds, they are few, and far
// enough from the timeout for a busy machine.
func slownesses() (all []slowness) {
	if !prove.Long() {
		return []slowness{{time.Second, 340 * time.Millisecond, 4, false}, {time.Second, 200 * time.Millisecond, 1, true}}
	}
	for timeout, takes := range map[time.Duration][]int{ // milliseconds
		time.Second:            {20, 90, 200, 340, 600, 900},
		250 * time.Millisecond: {20, 90, 150},
	} {
		for _, ms := range takes {
			for _, instances := range []int{1, 4} {
				all = append(all, slowness{timeout, time.Duration(ms) * time.Millisecond, instances, false})
			}
		}
	}
	for _, ms := range []int{20, 200, 300} {
		all = append(all, slowness{time.Second, time.Duration(ms) * time.Millisecond, 4, true})
	}
	slices.SortFunc(all, func(a, b slowness) int { return int(a.timeout-b.timeout) + int(a.takes-b.takes)/1e3 })
	return all
}

// requests is the most that one decision may send: a probe follows after a third of the
// time, and another one after two thirds. Both come a little before 0.6 of it.
func (s slowness) requests() int {
	switch {
	case s.lost:
		return 4
	case 10*s.takes <= 6*s.timeout:
		return 2
	}
	return 3
}

func (s slowness) String() string {
	text := fmt.Sprintf("%v of %v", s.takes, s.timeout)
	if s.lost {
		text += ", 1 answer in 10 lost"
	}
	return text
}

// Real guards have a table that answers late, but within DECISION_TIMEOUT. The table makes
// each decision, and exactly the limit is allowed.
func slowTables(t *testing.T, figures *figures) {
	dynamotest.Endpoint(t) // skips the test if there is no table
	for _, s := range slownesses() {
		prove.Progress("outage: the table takes %v, %d instances", s, s.instances)
		figures.slow = append(figures.slow, s.prove(t))
	}
}

// prove runs s and returns the figures. A machine that is busy with other work makes the table
// slower than s says. So s fails only if each of three runs does.
func (s slowness) prove(t *testing.T) []string {
	var late []string
	for range 3 {
		var row []string
		if row, late = s.run(t); len(late) == 0 {
			return row
		}
		prove.Progress("outage: %v: again, because of %d late decisions, such as %s", s, len(late), late[0])
	}
	t.Errorf("%v, in each of three runs: %s", s, strings.Join(late, "\n"))
	return nil
}

// run lets the guards decide, all at the same time, and returns the figures, and the decisions
// that took too many requests or were not the table's.
func (s slowness) run(t *testing.T) (row, late []string) {
	proxy, table := dynamotest.NewProxy(t), dynamotest.Table(t)
	var sent atomic.Int64
	var guards []*guard
	for range s.instances {
		guards = append(guards, startGuard(t, table, proxy.URL(), "DECISION_TIMEOUT="+s.timeout.String()))
	}
	proxy.Do(func(string) dynamotest.Fault {
		time.Sleep(s.takes)
		if s.lost && sent.Add(1)%10 == 0 {
			return dynamotest.HangAfter
		}
		return dynamotest.Pass
	})
	err := each(guards, func(g *guard) error {
		for i := range prove.Bound(12, 48) {
			if _, err := g.ask(t.Context(), fmt.Sprint("u", i%prove.Bound(1, 4))); err != nil {
				return err
			}
		}
		return nil
	})
	proxy.Heal()
	if err != nil {
		t.Fatal(err)
	}
	return s.judge(t, guards)
}

// judge holds the answers to docs/outages.md, "A slow table".
func (s slowness) judge(t *testing.T, guards []*guard) (row, late []string) {
	allowed, asked := ledger{}, map[string]int{}
	var sum summary
	most := 0
	for i, g := range guards {
		g.count(t)
		for _, a := range g.answers {
			r := record{user: a.user, start: a.start, end: a.start.Add(a.took), requests: a.requests, outage: a.Reason == "unavailable"}
			if sum.add(r); !r.outage {
				sum.byTable++
			}
			most = max(most, a.requests)
			if a.requests > s.requests() || r.outage && !s.lost {
				late = append(late, fmt.Sprintf("instance %d: %+v, want the table's decision after at most %d requests", i, a, s.requests()))
			}
			allowed.add(a)
			asked[fmt.Sprint(a.user, " in minute ", a.WindowKey)]++
		}
	}
	if len(late) > 0 {
		return nil, late
	}
	name := fmt.Sprintf("%v, %d instances", s, s.instances)
	got := allowed.keep(t, name)
	for minute, n := range asked {
		if want := min(n, limit); allowed[minute] != want && !s.lost {
			t.Errorf("%s: %s: %d allowed of %d, want %d", name, minute, allowed[minute], n, want)
		}
	}
	return []string{
		s.String(), fmt.Sprint(s.instances), fmt.Sprint(sum.decisions), percent(sum.byTable, sum.decisions),
		duration(sum.waited / time.Duration(sum.decisions)), duration(sum.worst),
		fmt.Sprintf("%.2f", float64(sum.requests)/float64(sum.decisions)), fmt.Sprint(most), fmt.Sprintf("%d of %d", got, limit),
	}, late
}

var slowHead = []string{
	"a request takes", "instances", "decisions", "by the table", "mean wait", "worst wait", "requests per decision", "most requests", "allowed in a minute",
}
