// Package simulate_test runs the real limiter for long, with many instances and
// everything that goes wrong, and judges each write and each answer.
//
// A run is drawn from a seed, and in TestRandomConfigurations its page of limits, too.
// Real limiters, real policies, the embedded store, the live limits and cleanup take
// part. Only time, the network and the clients are simulated. The judge is a set of models that are written from docs/policies.md
// and share no code with package policy (package oracle).
//
// A run is one event loop in virtual time. Goroutines would not do: if several are
// ready at the same moment, their order is not fixed. Then one seed would not make
// one run. Decisions are coroutines instead, which overlap at each
// attempt. Only the look at the live limits needs a goroutine, so each run is in a
// bubble of testing/synctest.
package simulate_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run only this seed; the first one is 1")
	seedsFlag = flag.Uint64("seeds", 0, "run this many seeds of each policy")
	firstSeed = flag.Uint64("from", 1, "of random configurations, with -seeds: begin with this seed")
	linesFlag = flag.Int("lines", 60, "print this many lines of a timeline")
)

// requests is how many clients a run has. They send about four requests each.
const requests = 60

// play runs one seed and returns the run.
func play(t *testing.T, subject subject, seed uint64, verbose bool) (s *sim) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		s = newSim(subject, seed, verbose)
		requests := requests
		if s.prepaid() {
			requests *= 3
		}
		s.plan(requests / 2)
		s.loop()
		s.ledger.settle()
		if s.chance(3) {
			s.deploy()
		}
		s.plan(requests - requests/2)
		s.loop()
		s.ledger.settle()
	})
	return s
}

// test returns the pattern of the test that runs a subject.
func (s subject) test() string {
	if s.draw != nil {
		return "TestRandomConfigurations"
	}
	return "'TestSimulation/runs/^" + strings.ReplaceAll(s.name, " ", "_") + "$'"
}

// report fails the test with the timeline of a run that broke a promise.
func report(t *testing.T, subject subject, seed uint64) {
	t.Helper()
	s := play(t, subject, seed, true)
	t.Fatalf("%s\n\nThe limits: %v, and %v for the tier premium; %d instances; clocks differ by more than 2 s: %v.\n"+
		"%s\n\nRun it again: go test ./internal/proofs/simulate -run %s -seed %d",
		s.violation, limitsOf(s.activities), s.activities[0].For(premium), len(s.instances), s.far,
		strings.Join(s.lines[max(0, len(s.lines)-*linesFlag):], "\n"), subject.test(), seed)
}

// Requests get lost, arrive late and come from different clocks, while limits
// change and items expire. Still, no write and no answer breaks a promise.
func TestSimulation(t *testing.T) {
	prove.Explain(t, "simulate")
	first, last := uint64(1), prove.Bound(testkit.Bound[uint64](3, 48), 5_000)
	switch {
	case *oneSeed > 0:
		first, last = *oneSeed, *oneSeed
	case *seedsFlag > 0:
		last = *seedsFlag
	}
	var mu sync.Mutex
	total, ended := stats{}, 0
	list := subjects()
	t.Run("runs", func(t *testing.T) {
		for _, subject := range list {
			t.Run(subject.name, func(t *testing.T) {
				t.Parallel()
				mine := stats{}
				for seed := first; seed <= last; seed++ {
					s := play(t, subject, seed, false)
					if s.violation != "" {
						report(t, subject, seed)
					}
					mine.add(s.stats)
				}
				mu.Lock()
				defer mu.Unlock()
				total.add(mine)
				ended++
				prove.Progress("simulate: %s has no violation in %d runs (%d of %d policies)", subject.name, mine["runs"], ended, len(list))
			})
		}
	})
	if t.Failed() || prove.Quick() || ended < len(list) || *oneSeed > 0 || drawn == nil || halves == nil { // a part of the runs
		return
	}
	total.add(drawn.stats)
	total.add(halves)
	prove.Save(t, "simulate", findings.Result{Seed: first, Figures: total.figures(t, len(list)), Tables: []findings.Table{drawn.pairs, measureSkew(t)}})
}

func TestTheSameSeedMakesTheSameRun(t *testing.T) {
	for _, subject := range append(subjects(), configurations) {
		for _, seed := range []uint64{1, oddRuns} {
			a, b := play(t, subject, seed, false), play(t, subject, seed, true)
			if a.hash != b.hash || fmt.Sprint(a.stats) != fmt.Sprint(b.stats) {
				t.Errorf("%s: two runs of the seed %d have the hashes %x and %x", subject.name, seed, a.hash, b.hash)
			}
			if c := play(t, subject, seed+1, false); c.hash == a.hash {
				t.Errorf("%s: two seeds have the same hash %x", subject.name, a.hash)
			}
		}
	}
}
