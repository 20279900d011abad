package outage_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
)

// For an hour, few requests get through. Alone, no instance admits more than any
// limit allows, and neither does the table.
func flapping(t *testing.T, figures *figures) {
	alone, table, both := map[string]peakOf{}, map[string]peakOf{}, map[string]peakOf{}
	for _, f := range []struct {
		name string
		way
		every int // one in so many requests gets through
	}{
		{"24 of 25: refused connections", refused, 25},
		{"24 of 25: black hole", blackHole, 25},
		{"24 of 25: access denied", denied, 25},
		{"24 of 25: answer lost", lost, 25},
		{"2 of 3: access denied", denied, 3},
	} {
		prove.Progress("outage: %s", f.name)
		var sum summary
		// With few users, each one's actions often get through.
		for group := range slices.Chunk(texts(), 4) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, f.name, prove.Bound(1, 3), 1, group...)
				w.users = w.users[:len(group)]
				for _, in := range w.instances {
					in.network.useFor(oneIn(f.every, f.way))
				}
				w.run(prove.Bound(150*time.Second, time.Hour), w.users)
				w.keepPromise()
				raise(alone, w.eachAlone())
				raise(table, w.peaks(w.table, 1))
				raise(both, w.highest(func(in *instance) map[string]peakOf { return w.peaks(in.all, 2) }))
				w.addTo(&sum)
			})
		}
		figures.flapping = append(figures.flapping, sum.flappingCells(f.name))
	}
	for _, limit := range slices.Sorted(maps.Keys(alone)) {
		if alone[limit].got == 0 || table[limit].got == 0 {
			t.Errorf("%s: %v admitted alone and %v by the table, want some", limit, alone[limit], table[limit])
		}
		figures.flapped = append(figures.flapped, []string{limit, alone[limit].String(), table[limit].String(), both[limit].String()})
	}
}

var (
	flappingHead = []string{"what fails", "decisions", "by the table", "mean wait", "worst wait", "requests per decision"}
	flappedHead  = []string{"limit", "one instance alone", "the table", "one instance, alone and by the table, of twice the limit"}
)

// addTo adds the decisions of all instances to s.
func (w *world) addTo(s *summary) {
	for _, in := range w.instances {
		for _, r := range in.records {
			if s.add(r); !r.outage {
				s.byTable++
			}
		}
	}
}

func (s *summary) flappingCells(name string) []string {
	return []string{
		name, fmt.Sprint(s.decisions), percent(s.byTable, s.decisions), duration(s.waited / time.Duration(s.decisions)), duration(s.worst),
		fmt.Sprintf("%.2f", float64(s.requests)/float64(s.decisions)),
	}
}

func percent(part, all int) string { return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(all)) }
