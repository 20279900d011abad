package histories_test

import (
	"fmt"
	"maps"
	"os"
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
		Equal:             func(a, b any) bool { return a.(*state).text == b.(*state).text },
		DescribeOperation: func(input, output any) string { return describe(input.(*call), output.(*ratelimit.Decision)) },
		DescribeState:     func(s any) string { return s.(*state).text },
	}
	return sets.ToModel()
}

// operations returns the operations that an order has to explain.
func (h *history) operations() []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, len(h.ops))
	resets := slices.ContainsFunc(h.ops, func(o op) bool { return o.call.op == reset })
	for _, o := range h.ops {
		if o.again && !resets {
			continue
		}
		o.call.fewer = slices.ContainsFunc(h.ops, func(other op) bool {
			gives := other.call.op == release || other.call.op == reset
			return gives && other.begin < o.end && o.begin < other.end
		})
		ops = append(ops, porcupine.Operation{ClientId: o.client, Input: o.call, Call: o.begin, Output: o.answer, Return: o.end})
	}
	return ops
}

func describe(c *call, d *ratelimit.Decision) string {
	text := fmt.Sprintf("%d %s %s %s of %d", c.now, c.op, c.part, c.id, c.n)
	if c.partial {
		text += " partial"
	}
	if c.at != 0 {
		text += fmt.Sprint(" at ", c.at)
	}
	if c.tier != 0 {
		text += fmt.Sprint(" tier ", c.tier)
	}
	if d == nil || c.part == maybe {
		return text + ": no answer"
	}
	return text + fmt.Sprintf(": %s granted %d receipt %d crossed %d used %d remaining %d wait %v reset %d readyAt %d waiting %d requests %d",
		d.Reason, d.Granted, d.At, d.Crossed, d.Used, d.Remaining, d.Wait, d.ResetAt, d.ReadyAt, d.Waiting, d.Requests)
}

// text lists the operations in the order of their answers.
func (h *history) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the tiers are %s\n", h.system.text())
	for _, o := range slices.SortedFunc(slices.Values(h.ops), func(a, b op) int { return int(a.end - b.end) }) {
		fmt.Fprintf(&b, "%4d to %4d  client %d  %s\n", o.begin, o.end, o.client, describe(o.call, o.answer))
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

// picture writes porcupine's page about the history and returns its name.
func (h *history) picture(t *testing.T, model porcupine.Model, info porcupine.LinearizationInfo) string {
	t.Helper()
	file, err := os.CreateTemp("", //nolint:usetesting // the picture must outlive the test
		fmt.Sprintf("history-%d-*.html", h.seed))
	if err == nil {
		err = porcupine.Visualize(model, info, file)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return err.Error()
	}
	return file.Name()
}

// A tally adds up the histories.
type tally struct {
	mu        sync.Mutex
	histories int
	policies  map[string]int
	results   map[porcupine.CheckResult]int
	ops       map[verb]int
	parts     map[part]int
	reasons   map[ratelimit.Reason]int
	faults    map[dynamotest.Fault]int
}

func newTally() *tally {
	return &tally{
		policies: map[string]int{}, results: map[porcupine.CheckResult]int{}, ops: map[verb]int{},
		parts: map[part]int{}, reasons: map[ratelimit.Reason]int{}, faults: map[dynamotest.Fault]int{},
	}
}

func (s *tally) add(h *history, result porcupine.CheckResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histories++
	s.results[result]++
	s.policies[h.system.text()]++
	for _, o := range h.ops {
		s.parts[o.call.part]++
		if o.call.part == whole || o.call.part == effect {
			s.ops[o.call.op]++
			s.reasons[o.answer.Reason]++
		}
	}
	for fault, n := range h.faults {
		s.faults[fault] += n
	}
}

// String returns the state of the work in one line.
func (s *tally) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d histories, %d violations, %d undecided", s.histories, s.results[porcupine.Illegal], s.results[porcupine.Unknown])
}

// save saves the figures, and requires that each kind of answer and fault
// occurred.
func (s *tally) save(t *testing.T) {
	t.Helper()
	for _, fault := range append(dynamotest.Faults(), dynamotest.Late) {
		if s.faults[fault] == 0 {
			t.Errorf("the fault %q never occurred", fault)
		}
	}
	for _, reason := range []ratelimit.Reason{ratelimit.OK, ratelimit.Limited, ratelimit.Delayed, ratelimit.Duplicate, ratelimit.Expired} {
		if s.reasons[reason] == 0 {
			t.Errorf("no answer was %q", reason)
		}
	}
	figures := []findings.Figure{
		{What: "policies", Value: fmt.Sprint(len(s.policies))},
		{What: "histories", Value: fmt.Sprint(s.histories)},
		{What: "histories that no order explains (violations)", Value: fmt.Sprint(s.results[porcupine.Illegal])},
		{What: "histories that were not decided in time", Value: fmt.Sprint(s.results[porcupine.Unknown])},
		{What: "operations without a known outcome", Value: fmt.Sprint(s.parts[maybe])},
		{What: "operations whose first attempts had an unknown outcome", Value: fmt.Sprint(s.parts[effect])},
	}
	prove.Save(t, "histories", findings.Result{Figures: figures, Tables: []findings.Table{
		counts("Operations", "operation", s.ops), counts("Answers", "answer", s.reasons), counts("Faults", "fault", s.faults),
	}})
}

// counts returns a table of numbers, the highest first.
func counts[K ~string](title, head string, numbers map[K]int) findings.Table {
	table := findings.Table{Title: title, Head: []string{head, "number"}}
	for _, key := range slices.SortedFunc(maps.Keys(numbers), func(a, b K) int { return numbers[b] - numbers[a] }) {
		table.Rows = append(table.Rows, []string{string(key), fmt.Sprint(numbers[key])})
	}
	return table
}
