package explore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cric-talk/guards/internal/proofs/findings"
)

// reductions tell how the explorer visits fewer states, and why each way loses
// nothing.
var reductions = [][2]string{
	{"a lost request and a lost answer are one fault", "an attempt that gets no answer stays on its way: it arrives at once (a lost answer), later, or never (a lost request)"},
	{"an outage is not a state of its own", "it is a time when no attempt gets through, and the explorer tries that for every attempt"},
	{"a decision depends only on the answers that it got", "the real loop runs again from its start with the same answers, so the explorer need not copy its state"},
	{"identical requests start in one fixed order", "if nothing refers to them, they can change places"},
	{"identical late copies arrive in one fixed order", "each does the same"},
	{"the answers to a finished decision are dropped", "only its effects, its late requests and what its caller keeps can matter"},
}

// A summary adds up explorations.
type summary struct {
	plans   map[string]*sums
	kinds   map[string]*sums
	order   []string
	excuses map[exception]int
}

type sums struct{ systems, states, transitions, decisions, leased int }

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
		to.decisions += len(x.asks) - 1
		to.leased += x.leased
	}
	for e, n := range x.excuses {
		s.excuses[e] += n
	}
}

func (s *summary) line(p plan) string {
	n := s.plans[p.name]
	return fmt.Sprintf("%s: %d systems, %d states, %d transitions, %d steps of decisions, %d from leases", p.name, n.systems, n.states, n.transitions, n.decisions, n.leased)
}

func (n *sums) row(name string) []string {
	return []string{name, fmt.Sprint(n.systems), fmt.Sprint(n.states), fmt.Sprint(n.transitions), fmt.Sprint(n.decisions)}
}

func (s *summary) result() findings.Result {
	all := &sums{}
	columns := []string{"systems", "states", "transitions", "steps of decisions"}
	byPlan := findings.Table{Title: "By bounds", Head: append([]string{"bounds"}, columns...)}
	for _, name := range s.order {
		n := s.plans[name]
		all = &sums{all.systems + n.systems, all.states + n.states, all.transitions + n.transitions, all.decisions + n.decisions, all.leased + n.leased}
		byPlan.Rows = append(byPlan.Rows, n.row(name))
	}
	byKind := findings.Table{Title: "By kind", Head: append([]string{"kind"}, columns...)}
	for _, name := range slices.Sorted(maps.Keys(s.kinds)) {
		byKind.Rows = append(byKind.Rows, s.kinds[name].row(name))
	}
	used := findings.Table{Title: "Exceptions", Head: []string{"exception", "stated in the documents", "transitions that need it"}}
	for _, e := range slices.Concat(stated, unstated) {
		in := "yes"
		if slices.Contains(unstated, e) {
			in = "no"
		}
		used.Rows = append(used.Rows, []string{string(e), in, fmt.Sprint(s.excuses[e])})
	}
	fewer := findings.Table{Title: "Reductions", Head: []string{"reduction", "why it loses nothing"}}
	for _, r := range reductions {
		fewer.Rows = append(fewer.Rows, r[:])
	}
	return findings.Result{
		Figures: []findings.Figure{
			{What: "systems", Value: fmt.Sprint(all.systems)},
			{What: "states", Value: fmt.Sprint(all.states)},
			{What: "transitions", Value: fmt.Sprint(all.transitions)},
			{What: "of these, an action is handed out from a lease", Value: fmt.Sprint(all.leased)},
			{What: "violations", Value: "0"},
		},
		Tables: []findings.Table{byPlan, byKind, used, fewer},
	}
}
