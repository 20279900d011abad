package policy

import (
	"math"
	"slices"
)

// An Update changes one item in one atomic step, if its guard, which is If and Also,
// holds at that moment. The guard must stay short, because DynamoDB accepts at most
// 300 operators. Each term, each AND and each OR is one, and a term that accepts a
// missing attribute counts two more.
type Update struct {
	If   [][]Term // at least one of these conjunctions must hold, as in (a AND b) OR (c AND d); empty: no condition
	Also []Term   // all of these must hold too
	Acts []Act    // at most one for each attribute

	ReadyAt int64 // when the actions may run; 0: now, because the policy gives no places

	// CountedAt is when the actions count, in Unix milliseconds, if another clock has made
	// that later than now; see [Policy.CountedAt]. 0: now.
	CountedAt int64
}

// A Term tests one attribute. It holds if the attribute exists and lies between
// From and To, both included. With OrMissing it also holds if the attribute is
// absent. If From is above To, only an absent attribute can satisfy the term.
type Term struct {
	Attr      string
	From, To  int64
	OrMissing bool
}

// AtMost returns a term that holds if the attribute reads as most or less.
func AtMost(attr string, most int64) Term { return Term{attr, math.MinInt64, most, most >= 0} }

// Within returns a term that holds if the attribute exists and lies in that range.
func Within(attr string, from, to int64) Term { return Term{attr, from, to, false} }

// Exactly returns a term that holds if the attribute exists and has the value.
func Exactly(attr string, value int64) Term { return Within(attr, value, value) }

// Missing returns a term that holds if the attribute is absent.
func Missing(attr string) Term { return Term{attr, 1, 0, true} }

// An Act changes one attribute.
type Act struct {
	Verb  Verb
	Attr  string
	Value int64 // not used by Delete
}

// A Verb is what an Act does to its attribute.
type Verb uint8

// The verbs.
const (
	Add    Verb = iota // add Value; an absent attribute counts as 0
	Set                // set the attribute to Value
	Delete             // remove the attribute, so that it reads as 0
)

// Holds reports whether the guard of u holds in s.
func (u Update) Holds(s State) bool {
	one := len(u.If) == 0 || slices.ContainsFunc(u.If, func(terms []Term) bool { return all(terms, s) })
	return one && all(u.Also, s)
}

// all reports whether every term holds in s.
func all(terms []Term, s State) bool {
	for _, t := range terms {
		if !t.Holds(s) {
			return false
		}
	}
	return true
}

// Holds reports whether the term is true in s.
func (t Term) Holds(s State) bool {
	v, ok := s.Find(t.Attr)
	if !ok {
		return t.OrMissing
	}
	return t.From <= v && v <= t.To
}

// Apply returns a copy of s after the acts of u. It does not look at the guard.
func (u Update) Apply(s State) State {
	room := len(s)
	for _, a := range u.Acts {
		if a.Verb != Delete {
			room++
		}
	}
	after := append(make(State, 0, room), s...)
	u.ApplyTo(&after)
	return after
}

// ApplyTo performs the acts of u in s, without a look at the guard. Nobody else may hold s.
func (u Update) ApplyTo(s *State) {
	for _, a := range u.Acts {
		i, ok := s.index(a.Attr)
		switch {
		case a.Verb == Delete && ok:
			*s = slices.Delete(*s, i, i+1)
		case a.Verb == Delete:
		case !ok:
			*s = slices.Insert(*s, i, Attr{a.Attr, a.Value})
		case a.Verb == Add:
			(*s)[i].Value += a.Value
		default:
			(*s)[i].Value = a.Value
		}
	}
}

// Attributes calls yield with each attribute that the guard or the acts of u
// name, until yield returns false. An attribute can appear more than once.
func (u Update) Attributes(yield func(string) bool) {
	for _, terms := range append(slices.Clip(u.If), u.Also) {
		for _, t := range terms {
			if !yield(t.Attr) {
				return
			}
		}
	}
	for _, a := range u.Acts {
		if !yield(a.Attr) {
			return
		}
	}
}
