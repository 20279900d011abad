package outage_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/prove"
)

// For an hour, one request in 25 gets through. Alone, no instance admits more
// than any limit allows, and neither does the table.
func flapping(t *testing.T, figures *figures) {
	alone, table, both := map[string]peakOf{}, map[string]peakOf{}, map[string]peakOf{}
	for _, f := range []struct {
		name string
		way
	}{{"refused connections", refused}, {"black hole", blackHole}, {"access denied", denied}, {"answer lost", lost}} {
		prove.Progress("outage: one request in 25 gets through, the others: %s", f.name)
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, f.name, prove.Bound(1, 3), 1, texts()...)
			for _, in := range w.instances {
				in.network.useFor(oneIn(25, f.way))
			}
			w.run(prove.Bound(100*time.Second, time.Hour), w.users)
			w.keepPromise()
			raise(alone, w.eachAlone())
			raise(table, w.peaks(w.table, 1))
			raise(both, w.highest(func(in *instance) map[string]peakOf { return w.peaks(in.all, 2) }))
			figures.flapping = append(figures.flapping, w.flappingCells(f.name))
		})
	}
	for _, limit := range slices.Sorted(maps.Keys(alone)) {
		if alone[limit].got == 0 || table[limit].got == 0 {
			t.Errorf("%s: %v admitted alone and %v by the table, want some", limit, alone[limit], table[limit])
		}
		figures.flapped = append(figures.flapped, []string{limit, alone[limit].String(), table[limit].String(), both[limit].String()})
	}
}

var (
	flappingHead = []string{"24 of 25 requests", "decisions", "by the table", "mean wait", "worst wait", "requests per decision"}
	flappedHead  = []string{"limit", "one instance alone", "the table", "one instance, alone and by the table, of twice the limit"}
)

func (w *world) flappingCells(name string) []string {
	var s summary
	table := 0
	for _, in := range w.instances {
		for _, r := range in.records {
			s.add(r)
			if !r.outage {
				table++
			}
		}
	}
	return []string{
		name, fmt.Sprint(s.decisions), percent(table, s.decisions), duration(s.waited / time.Duration(s.decisions)), duration(s.worst),
		fmt.Sprintf("%.2f", float64(s.requests)/float64(s.decisions)),
	}
}

func percent(part, all int) string { return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(all)) }
