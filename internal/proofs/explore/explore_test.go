// Package explore tries every order of events in small systems: a few requests,
// two instances, and a store that loses, delays and throttles. It drives the real
// limiter and the real policies, and checks in each state what the documents
// promise. An exploration ends because it visits no state twice.
//
// A system is a set of requests with bounds (system_test.go). A move is one event,
// such as an attempt that is performed and whose answer is lost (moves_test.go).
// The ledger notes what is counted, apart from the code under test
// (ledger_test.go), and the judge compares both (judge_test.go).
package explore

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit"
)

// maxStates ends an exploration whose bounds are too wide for this machine.
const maxStates = 8_000_000

// sample is how many systems a quick run has for each one that it explores.
const sample = 29

// Every state that the systems of all plans can reach has the properties. A
// violation is printed with its system, which wrongOnce can take, and what leads to it.
// The figures are saved only if each plan runs, and not with a -run that selects some.
// A quick run explores one system of sample.
func TestEveryInterleavingHasTheProperties(t *testing.T) {
	prove.Explain(t, "explore")
	begin := time.Now()
	sum := newSummary()
	all := plans(t)
	for _, p := range all {
		if t.Failed() {
			break // one violation often breaks the plans after it, too
		}
		t.Run(p.name, func(t *testing.T) {
			violations, lends := 0, false
			p.explore(func(x *explorer, f *found, err error) {
				sum.add(p, x)
				lends = x.lends()
				switch {
				case err != nil:
					t.Error(err)
				case f != nil && violations < 3: // more of them look alike
					t.Errorf("%v\n\nRun it again: %s go test ./internal/proofs/explore -run='%s$'", f, bounds(), t.Name())
					violations++
				}
			})
			prove.Progress("%s", sum.line(p))
			if !prove.Long() {
				t.Logf("%s (%v)", sum.line(p), time.Since(begin))
			}
			if !prove.Quick() && p.list == nil && lends && sum.plans[p.name].leased == 0 {
				t.Error("no lease is handed out")
			}
		})
	}
	if prove.Quick() || len(sum.order) < len(all) {
		return
	}
	for _, e := range unstated {
		if sum.excuses[e] == 0 {
			t.Errorf("nothing needs the exception that %s", e)
		}
	}
	if !t.Failed() {
		prove.Save(t, "explore", sum.result())
	}
}

// bounds returns the variable that brings the bounds of this run again. A quick run has a sample
// of the short ones.
func bounds() string {
	if prove.Long() {
		return "PROVE=1"
	}
	return "TESTS=" + string(testkit.Long)
}

// explore explores the systems of a plan, on all cores. It calls done once for
// each, one after the other.
func (p plan) explore(done func(*explorer, *found, error)) {
	systems := make(chan *system)
	var workers sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for y := range systems {
				x := newExplorer(y)
				f, err := x.explore(maxStates)
				mu.Lock()
				done(x, f, err)
				mu.Unlock()
			}
		})
	}
	for i, y := range p.systems() {
		if i%sample == 0 || p.list != nil || !prove.Quick() {
			systems <- y
		}
	}
	close(systems)
	workers.Wait()
}
