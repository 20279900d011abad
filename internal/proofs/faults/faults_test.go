// Package faults_test proves that no fault between a limiter and its table makes
// an answer and the table disagree. It sends calls through a proxy that breaks
// requests in every way that it knows, and compares each answer with the item
// that is stored. The file ledger_test.go defines the words for a disagreement.
package faults_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// policies returns policies whose windows outlast every test. They are each kind, each pair
// of kinds, all kinds at once, and some whose state or ids are kept in another way. No key
// is busy, so a prepaid limit keeps each promise. Half of the worlds with named limits have
// two activities of a group.
func policies() []string {
	all := policytest.Combined("4/100d", "5/50d")
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], " for 8s to 20s", " for 50d to 100d")
	}
	return append(all,
		"101/100d", "log 60/100d", "sliding 120/100d", "reservoir 2/10d ahead 30d", "bucket 1/5d", "a: reservoir 2/10d ahead 50d, b: 5/100d",
		"w: 4/100d", "w: log 9/100d cost 2", "a: 9/100d cost 2, w: bucket 5/50d", "log 3/100d",
		"4/month in Europe/Berlin", "a: 4/month in Europe/Berlin, w: log 5/50d", "101/100d prepaid", "a: sliding 120/100d prepaid, w: bucket 125/50d prepaid")
}

func TestNoFaultMakesAnAnswerAndTheTableDisagree(t *testing.T) {
	prove.Explain(t, "faults")
	proxy := dynamotest.NewProxy(t)
	r := newRig(t, proxy)
	total := newTally()
	t.Run("decisions", func(t *testing.T) {
		each := prove.Bound(400, 100_000) / len(policies())
		for i, text := range policies() {
			t.Run(text, func(t *testing.T) {
				decisions(t, r, total, text, uint64(i), each)
			})
			prove.Progress("faults: %-60s %v", text, total)
		}
	})
	t.Run("operators", func(t *testing.T) { sweeps(t, proxy, total) })
	total.save(t)
}

// decisions calls the limiters of many worlds until they met enough faults.
func decisions(t *testing.T, r *rig, total *tally, text string, policy uint64, enough int) {
	t.Helper()
	var wg sync.WaitGroup
	var next atomic.Uint64
	faults := total.faultsNow()
	for range prove.Bound(1, 4) {
		wg.Go(func() {
			for total.faultsNow()-faults < enough && !t.Failed() {
				n := next.Add(1)
				w := r.world(text, fmt.Sprintf("u%d-%d", policy, n), policy<<32|n)
				kinds := dynamotest.Faults()
				for i := range 12 {
					list := together(w.random, kinds[(int(policy)*7+int(n)*12+i)%len(kinds)]) // each in turn
					if err := w.step(t.Context(), w.draw(), list, 1+w.random.IntN(4)); err != nil {
						t.Error(err)
						return
					}
				}
				total.add(w.faults, w.calls, w.found)
				if len(w.found) > 0 {
					t.Errorf("world %d: %v\n%s", n, w.found, w.text())
				}
			}
		})
	}
	wg.Wait()
}

// together draws the faults of one call: often some of one kind, or a mix.
func together(random *rand.Rand, kind dynamotest.Fault) []dynamotest.Fault {
	list := make([]dynamotest.Fault, random.IntN(5))
	for i := range list {
		switch random.IntN(4) {
		case 0:
		case 1:
			list[i] = dynamotest.Faults()[random.IntN(len(dynamotest.Faults()))]
		default:
			list[i] = kind
		}
	}
	return list
}

// A tally adds up the worlds.
type tally struct {
	mu     sync.Mutex
	faults map[dynamotest.Fault]int
	calls  map[ratelimit.Op]int
	found  map[word]int
}

func newTally() *tally {
	return &tally{faults: map[dynamotest.Fault]int{}, calls: map[ratelimit.Op]int{}, found: map[word]int{}}
}

func (s *tally) add(faults map[dynamotest.Fault]int, calls map[ratelimit.Op]int, found map[word][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for fault, n := range faults {
		s.faults[fault] += n
	}
	for op, n := range calls {
		s.calls[op] += n
	}
	for word, texts := range found {
		s.found[word] += len(texts)
	}
}

// faultsNow returns how many faults there were so far.
func (s *tally) faultsNow() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.faults {
		n += m
	}
	return n
}

// String returns the state of the work in one line.
func (s *tally) String() string { return fmt.Sprintf("%d faults, found %v", s.faultsNow(), s.found) }

// save saves the figures, and requires that each fault occurred.
func (s *tally) save(t *testing.T) {
	t.Helper()
	for _, fault := range append(dynamotest.Faults(), dynamotest.UnprocessedStatements) {
		if s.faults[fault] == 0 {
			t.Errorf("the fault %q never occurred", fault)
		}
	}
	for _, op := range []ratelimit.Op{ratelimit.Check, ratelimit.Status, ratelimit.Release, ratelimit.Renew, ratelimit.Reset} {
		if s.calls[op] == 0 {
			t.Errorf("there is no %s", op)
		}
	}
	calls := 0
	for _, n := range s.calls {
		calls += n
	}
	figures := []findings.Figure{
		{What: "policies", Value: fmt.Sprint(len(policies()))},
		{What: "calls", Value: fmt.Sprint(calls)},
		{What: "faults", Value: fmt.Sprint(s.faultsNow())},
	}
	for _, word := range words {
		figures = append(figures, findings.Figure{What: string(word), Value: fmt.Sprint(s.found[word])})
	}
	prove.Save(t, "faults", findings.Result{Figures: figures, Tables: []findings.Table{
		findings.Counts("Calls", "call", s.calls), findings.Counts("Faults", "fault", s.faults),
	}})
}
