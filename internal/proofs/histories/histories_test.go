// Package histories_test proves that concurrent requests are decided as if they
// came one after the other, whatever is lost on the way.
//
// A history is what some clients ask several instances about one item, and what
// they are told. Porcupine looks for an order of the operations that makes each
// answer the one that the contract demands. The models of the limits come from
// package oracle; model_test.go and step_test.go add ids, receipts and answers.
package histories_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// systems returns the policies to test: each kind, each pair of kinds, all kinds
// at once, and some whose state or ids are kept in another way. Several policies
// are tiers that share a count. Half of the histories of limits with names are of two
// activities of a group. If their costs differ, the policies belong to the activities.
func systems() (all [][]string) {
	for _, text := range policytest.Combined("3/9s", "4/18s") {
		all = append(all, []string{text})
	}
	return append(all,
		[]string{"3/9s", "5/9s"}, []string{"3/9s", "101/9s"}, []string{"log 3/9s", "log 5/9s"},
		[]string{"sliding 3/9s", "sliding 5/9s"}, []string{"bucket 3/9s", "bucket 3/9s burst 5"},
		[]string{"reservoir 2/9s ahead 30s"}, []string{"reservoir 2/9s ahead 20s", "reservoir 2/9s ahead 1m"},
		[]string{"log 60/9s"}, []string{"sliding 120/9s"},
		[]string{"lockout 3/9s for 2s to 9s", "lockout 5/9s for 9s"}, []string{"lockout 2/9s for 1s"}, []string{"a: lockout 3/9s for 3s, w: log 4/18s", "a: lockout 2/9s for 3s, w: log 4/18s"},
		[]string{"3/9s max 7 with 2", "3/9s max 7 with 5"}, []string{"log 3/9s max 6 with 2", "log 3/9s max 6"}, []string{"sliding 3/9s max 7 with 2", "sliding 3/9s max 7 with 5"},
		[]string{"bucket 3/9s burst 5 max 7 with 2"}, []string{"bucket 3/9s burst 5 max 7 with 6", "bucket 3/9s max 7 with 6"}, []string{"60/9s max 200 with 5", "60/9s max 200 with 100"},
		[]string{"a: 3/9s max 7, w: log 4/18s max 9 with 5", "a: 5/9s max 6, w: log 3/18s max 9 with 3"}, // a group
		[]string{"a: 3/9s, w: log 4/18s", "a: 5/9s, w: log 3/18s"},
		[]string{"a: 4/9s, w: log 6/18s", "a: 4/9s cost 2, w: log 6/18s cost 3"},
		[]string{"a: sliding 6/9s, w: bucket 3/18s burst 4", "a: sliding 6/9s cost 3, w: bucket 3/18s burst 4 cost 2"},
	)
}

func TestEachHistoryHasAnOrderThatTheContractAllows(t *testing.T) {
	prove.Explain(t, "histories")
	proxy, table := dynamotest.NewProxy(t), dynamotest.Table(t)
	total := &tally{counts: map[string]map[string]int{}}
	each := prove.Bound(3, 1000)
	var rigs []*rig
	for range workers {
		rigs = append(rigs, newRig(t, proxy, table))
	}
	for n, texts := range systems() {
		sys := newSystem(texts...)
		name := strings.Join(texts, "; ")
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			var next atomic.Int64
			for _, r := range rigs {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(each) && !t.Failed(); i = next.Add(1) {
						seed := uint64(n)*1_000_000 + uint64(i)
						h := r.history(t.Context(), sys, fmt.Sprint("u", seed), seed)
						h.run()
						total.add(h, h.judged(t))
					}
				})
			}
			wg.Wait()
			prove.Progress("histories: %-40s %v", name, total.table("result"))
		})
	}
	total.save(t)
}

// workers is how many histories run at the same time.
const workers = 4

// judged looks for an order of the operations that the contract allows.
func (h *history) judged(t *testing.T) porcupine.CheckResult {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(h.model(), h.operations(), patience)
	for _, err := range h.errs {
		result = porcupine.Illegal
		t.Errorf("history %d: %v", h.seed, err)
	}
	if result != porcupine.Ok {
		t.Errorf("history %d is %s:\n%s", h.seed, result, h.text())
	}
	return result
}

// patience is how long porcupine may look for an order of one history.
const patience = 20 * time.Second
