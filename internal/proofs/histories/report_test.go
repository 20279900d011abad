package histories_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// model returns the contract as porcupine wants it. Its states are sets,
// because an operation without an answer has several outcomes.
func (h *history) model() porcupine.Model {
	sets := porcupine.NondeterministicModel{
		Init: func() []any { return []any{h.system.empty()} },
		Step: func(s, input, output any) (next []any) {
			for _, n := range h.system.step(s.(*state), input.(*call), output.(*ratelimit.Decision)) {
				next = append(next, n)
			}
			return next
		},
		Equal: func(a, b any) bool { return a.(*state).text == b.(*state).text },
	}
	return sets.ToModel()
}

// operations returns the operations that an order has to explain.
func (h *history) operations() []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, len(h.ops))
	for _, o := range h.ops {
		takesBack := false
		for _, other := range h.ops {
			if other.begin >= o.end || o.begin >= other.end {
				continue
			}
			gives := other.call.op == ratelimit.Release || other.call.op == ratelimit.Reset
			checks := other.call.op == ratelimit.Check
			takesBack = takesBack || gives
			o.call.fewer = o.call.fewer || gives || checks && h.system.restarts(o.call, other.call)
			o.call.raced = o.call.raced || other.begin != o.begin && (gives || checks)
		}
		if o.again && !takesBack { // nothing comes between two lost attempts, so the second one changes nothing
			continue
		}
		ops = append(ops, porcupine.Operation{ClientId: o.client, Input: o.call, Call: o.begin, Output: o.answer, Return: o.end})
	}
	return ops
}

// text lists the operations in the order of their answers.
func (h *history) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the tiers are %s\n", h.system.text())
	for _, o := range slices.SortedFunc(slices.Values(h.ops), func(a, b op) int { return int(a.end - b.end) }) {
		fmt.Fprintf(&b, "%4d to %4d  client %d  %+v", o.begin, o.end, o.client, *o.call)
		if o.answer != nil && o.call.part != maybe {
			fmt.Fprintf(&b, ": %+v", *o.answer)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// text returns the policies of the tiers.
func (sys system) text() string {
	var texts []string
	for _, t := range sys {
		texts = append(texts, t.String())
	}
	return strings.Join(texts, "; ")
}

// A tally counts what the histories had, for each table of the report.
type tally struct {
	mu     sync.Mutex
	counts map[string]map[string]int
}

// table returns the counts of a table.
func (s *tally) table(name string) map[string]int {
	if s.counts[name] == nil {
		s.counts[name] = map[string]int{}
	}
	return s.counts[name]
}

func (s *tally) add(h *history, result porcupine.CheckResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table("result")[string(result)]++
	s.table("policy")[h.system.text()]++
	for _, o := range h.ops {
		s.table("part")[string(o.call.part)]++
		if o.call.part == whole || o.call.part == effect {
			s.table("operation")[string(o.call.op)]++
			s.table("answer")[string(o.answer.Reason)]++
		}
	}
	for fault, n := range h.faults {
		s.table("fault")[string(fault)] += n
	}
}

// save saves the figures, and requires that each kind of answer and fault
// occurred.
func (s *tally) save(t *testing.T) {
	t.Helper()
	for _, fault := range append(dynamotest.Faults(), dynamotest.Late) {
		if s.table("fault")[string(fault)] == 0 {
			t.Errorf("the fault %q never occurred", fault)
		}
	}
	for _, reason := range []ratelimit.Reason{ratelimit.OK, ratelimit.Limited, ratelimit.Delayed, ratelimit.Duplicate, ratelimit.Expired} {
		if s.table("answer")[string(reason)] == 0 {
			t.Errorf("no answer was %q", reason)
		}
	}
	results, parts, total := s.table("result"), s.table("part"), 0
	for _, n := range results {
		total += n
	}
	figures := []findings.Figure{
		{What: "policies", Value: fmt.Sprint(len(s.table("policy")))},
		{What: "histories", Value: fmt.Sprint(total)},
		{What: "histories that no order explains (violations)", Value: fmt.Sprint(results[string(porcupine.Illegal)])},
		{What: "histories that were not decided in time", Value: fmt.Sprint(results[string(porcupine.Unknown)])},
		{What: "operations without a known outcome", Value: fmt.Sprint(parts[string(maybe)])},
		{What: "operations whose first attempts had an unknown outcome", Value: fmt.Sprint(parts[string(effect)])},
	}
	prove.Save(t, "histories", findings.Result{Figures: figures, Tables: []findings.Table{
		findings.Counts("Operations", "operation", s.table("operation")), findings.Counts("Answers", "answer", s.table("answer")), findings.Counts("Faults", "fault", s.table("fault")),
	}})
}
