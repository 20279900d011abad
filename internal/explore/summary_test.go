package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/findings"
)

// reductions are the ways in which the explorer visits fewer states, and why
// each one loses nothing.
var reductions = [][2]string{
	{"a lost request and a lost answer are one fault", "an attempt that gets no answer stays on its way: it arrives at once (a lost answer), later, or never (a lost request)"},
	{"an outage is not a state of its own", "it is a time in which no attempt arrives or is answered, and every attempt may do so"},
	{"a decision is what it was told", "the real loop runs again from its start with the same answers, so nothing of it has to be copied"},
	{"requests that are alike start in order", "if nothing refers to them, they can change places"},
	{"late copies that are alike arrive in order", "each does the same"},
	{"what a decision that is over was told is forgotten", "only its effects, its late requests and what its caller keeps can matter"},
}

// A summary adds up explorations.
type summary struct {
	plans   map[string]*sums
	kinds   map[string]*sums
	order   []string
	excuses map[exception]int
}

type sums struct{ systems, states, transitions, decisions int }

func newSummary() *summary {
	return &summary{plans: map[string]*sums{}, kinds: map[string]*sums{}, excuses: map[exception]int{}}
}

func (s *summary) add(p plan, x *explorer) {
	if s.plans[p.name] == nil {
		s.plans[p.name] = &sums{}
		s.order = append(s.order, p.name)
	}
	if s.kinds[x.kinds] == nil {
		s.kinds[x.kinds] = &sums{}
	}
	for _, to := range []*sums{s.plans[p.name], s.kinds[x.kinds]} {
		to.systems++
		to.states += x.states
		to.transitions += x.transitions
		to.decisions += len(x.tolds) - 1
	}
	for e, n := range x.excuses {
		s.excuses[e] += n
	}
}

func (s *summary) line(p plan) string {
	n := s.plans[p.name]
	return fmt.Sprintf("%s: %d systems, %d states, %d transitions, %d steps of decisions", p.name, n.systems, n.states, n.transitions, n.decisions)
}

func (n *sums) row(name string) []string {
	return []string{name, grouped(n.systems), grouped(n.states), grouped(n.transitions), grouped(n.decisions)}
}

func (s *summary) result() findings.Result {
	all := &sums{}
	head := []string{"", "systems", "states", "transitions", "steps of decisions"}
	byPlan := findings.Table{Title: "By bounds", Head: head}
	for _, name := range s.order {
		n := s.plans[name]
		all = &sums{all.systems + n.systems, all.states + n.states, all.transitions + n.transitions, all.decisions + n.decisions}
		byPlan.Rows = append(byPlan.Rows, n.row(name))
	}
	byKind := findings.Table{Title: "By kind", Head: head}
	for _, name := range slices.Sorted(maps.Keys(s.kinds)) {
		byKind.Rows = append(byKind.Rows, s.kinds[name].row(name))
	}
	used := findings.Table{Title: "Exceptions", Head: []string{"exception", "in the contract", "transitions that need it"}}
	for _, e := range slices.Concat(stated, unstated) {
		in := "yes"
		if slices.Contains(unstated, e) {
			in = "no"
		}
		used.Rows = append(used.Rows, []string{string(e), in, grouped(s.excuses[e])})
	}
	fewer := findings.Table{Title: "Reductions", Head: []string{"reduction", "why it loses nothing"}}
	for _, r := range reductions {
		fewer.Rows = append(fewer.Rows, r[:])
	}
	return findings.Result{
		Figures: []findings.Figure{
			{What: "systems", Value: grouped(all.systems)},
			{What: "states", Value: grouped(all.states)},
			{What: "transitions", Value: grouped(all.transitions)},
			{What: "violations", Value: "0"},
		},
		Tables: []findings.Table{byPlan, byKind, used, fewer},
	}
}

// grouped writes a number as 1,234,567.
func grouped(n int) string {
	text := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
