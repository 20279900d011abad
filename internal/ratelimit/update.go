package ratelimit

import "maps"

// State is the integer attributes that a policy keeps in one item. An absent
// attribute reads as 0, so the nil State is an item that does not exist.
type State map[string]int64

// A Plan decides in a state. It returns the update that takes the actions, or
// false where the state refuses them. It must not change the state.
type Plan func(State) (Update, bool)

// An Update changes one item in one atomic step, where its guard holds.
type Update struct {
	If   [][]Term // one of these conjunctions must hold where the update lands; none: always
	Acts []Act    // at most one for an attribute
}

// A Term compares an attribute with a constant.
type Term struct {
	Attr  string
	Op    Op
	Value int64
}

// Op is a Term's comparison.
type Op uint8

// The comparisons.
const (
	AtMost Op = iota // attribute <= value
	Above            // attribute > value
)

// An Act changes an attribute.
type Act struct {
	Verb  Verb
	Attr  string
	Value int64 // unused by Delete
}

// Verb is what an Act does.
type Verb uint8

// The verbs.
const (
	Add    Verb = iota // add the value
	Set                // set to the value
	Delete             // remove the attribute, so that it reads as 0
)

// Holds says whether the guard of u holds in s.
func (u Update) Holds(s State) bool {
	for _, terms := range u.If {
		if all(terms, s) {
			return true
		}
	}
	return len(u.If) == 0
}

func all(terms []Term, s State) bool {
	for _, t := range terms {
		if !t.Holds(s[t.Attr]) {
			return false
		}
	}
	return true
}

// Holds says whether the term is true of an attribute that reads as v.
func (t Term) Holds(v int64) bool {
	if t.Op == Above {
		return v > t.Value
	}
	return v <= t.Value
}

// Apply returns s after the acts of u, whatever its guard says, and leaves s
// as it was.
func (u Update) Apply(s State) State {
	after := maps.Clone(s)
	if after == nil {
		after = make(State, len(u.Acts))
	}
	for _, a := range u.Acts {
		switch a.Verb {
		case Add:
			after[a.Attr] += a.Value
		case Set:
			after[a.Attr] = a.Value
		case Delete:
			delete(after, a.Attr)
		}
	}
	return after
}
