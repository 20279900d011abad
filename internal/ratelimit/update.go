package ratelimit

import (
	"maps"
	"math"
)

// State is the integer attributes that a policy keeps in one item. An absent
// attribute reads as 0, so the nil State is an item that does not exist.
type State map[string]int64

// A Plan decides in a state. It returns the update that takes the actions, or
// false where the state refuses them. It must not change the state.
type Plan func(State) (Update, bool)

// An Update changes one item in one atomic step, where its guard holds.
//
// A guard is to stay short: a store takes 300 operators. A term costs one, one
// more where [AtMost] allows for a missing attribute, and so does each AND and
// OR between terms.
type Update struct {
	If   [][]Term // one of these conjunctions must hold where the update lands; none: always
	Acts []Act    // at most one for an attribute
}

// A Term holds of an attribute that is there and From <= attribute <= To, and
// with OrMissing of one that is not there, too.
type Term struct {
	Attr      string
	From, To  int64
	OrMissing bool
}

// AtMost holds where the attribute reads as at most most: also where it is
// missing.
func AtMost(attr string, most int64) Term { return Term{attr, math.MinInt64, most, most >= 0} }

// Within holds where the attribute is there, and from <= attribute <= to.
func Within(attr string, from, to int64) Term { return Term{attr, from, to, false} }

// Missing holds where the attribute is not there.
func Missing(attr string) Term { return Term{attr, 1, 0, true} }

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
		if !t.Holds(s) {
			return false
		}
	}
	return true
}

// Holds says whether the term is true in s.
func (t Term) Holds(s State) bool {
	v, ok := s[t.Attr]
	if !ok {
		return t.OrMissing
	}
	return t.From <= v && v <= t.To
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
