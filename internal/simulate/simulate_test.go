// Package simulate_test runs the real limiter for long, with many instances and
// everything that goes wrong, and judges each write and each answer by models of
// its own.
package simulate_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cric-talk/guards/internal/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
)

var oneSeed = flag.Uint64("seed", 0, "run only the seed with this number, counted from 1")

var seedsFlag = flag.Uint64("seeds", 20, "run this many seeds of each policy")

var linesFlag = flag.Int("lines", 60, "print so many lines of a timeline")

// stats count what happened in runs.
type stats struct {
	seeds, attempts, writes, errors, alone, repeated, waits, left, edits int
	swept                                                                int64
	beyond                                                               int // what the contract promises only for clocks that differ by up to 2 s
	oldReceipts                                                          int // releases by an older receipt of a repeated id
	afterRefusal                                                         int // attempts that arrived, and were counted, after their request was refused
	faults                                                               [faults]int
	decisions                                                            map[verb]int
	reasons                                                              map[ratelimit.Reason]int
}

// requests is how many first requests a run has.
const requests = 100

// play runs one seed and returns the run.
func play(t *testing.T, subject subject, seed uint64, verbose bool) (s *sim) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { // the live limits wait by the clock of the process
		s = newSim(subject, seed, verbose)
		s.stats.seeds, s.stats.decisions, s.stats.reasons = 1, map[verb]int{}, map[ratelimit.Reason]int{}
		s.far = s.chance(5)
		s.activity = s.code(subject.texts)
		s.ledger = ledger{sim: s, users: map[string]*user{}}
		s.settings = settings{sim: s, versions: make([]settled, 1)}
		for i := range 3 + s.random.IntN(5)*s.random.IntN(12) {
			s.instances = append(s.instances, s.newInstance(i))
		}
		s.plan(requests)
		s.loop()
	})
	return s
}

// report fails the test with the timeline of a run that broke a promise.
func report(t *testing.T, subject subject, seed uint64) {
	t.Helper()
	s := play(t, subject, seed, true)
	t.Fatalf("%s\n\nthe limits: %v, premium %v; %d instances; clocks differ by more than 2 s: %v\n%s\n\nrun it again: go test ./internal/simulate -run 'TestSimulation/^%s$' -seed %d",
		s.violation, s.activity.Limit, s.activity.For(premium), len(s.instances), s.far,
		strings.Join(s.lines[max(0, len(s.lines)-*linesFlag):], "\n"), strings.ReplaceAll(subject.name, " ", "_"), seed)
}

// Requests get lost, arrive late and come from different clocks, while limits
// change and items expire. Still, no write and no answer breaks a promise.
func TestSimulation(t *testing.T) {
	seeds := prove.Bound(*seedsFlag, 10_000)
	for _, subject := range subjects() {
		t.Run(subject.name, func(t *testing.T) {
			first, last := uint64(1), seeds
			if *oneSeed > 0 {
				first, last = *oneSeed, *oneSeed
			}
			for seed := first; seed <= last; seed++ {
				if s := play(t, subject, seed, false); s.violation != "" {
					report(t, subject, seed)
				}
			}
		})
	}
}

func TestTheSameSeedMakesTheSameRun(t *testing.T) {
	for _, subject := range subjects() {
		a, b := play(t, subject, 1, false), play(t, subject, 1, true)
		if a.hash != b.hash || fmt.Sprint(a.stats) != fmt.Sprint(b.stats) {
			t.Errorf("%s: two runs of one seed have the hashes %x and %x", subject.name, a.hash, b.hash)
		}
		if c := play(t, subject, 2, false); c.hash == a.hash {
			t.Errorf("%s: two seeds have the same hash %x", subject.name, a.hash)
		}
	}
}
