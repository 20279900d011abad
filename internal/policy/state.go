package policy

import (
	"cmp"
	"slices"
	"strings"
)

// State holds the integer attributes of one stored item, sorted by name. An absent
// attribute reads as 0, so the nil State stands for an item that does not exist. Only
// [Update.ApplyTo] changes a State, so others can share it.
type State []Attr

// An Attr is an attribute of an item.
type Attr struct {
	Name  string
	Value int64
}

// Sort puts the attributes of a new state in order. No name may stand twice.
func (s State) Sort() {
	slices.SortFunc(s, func(a, b Attr) int { return cmp.Compare(a.Name, b.Name) })
}

// Get returns the value of an attribute. It is 0 if s does not have it.
func (s State) Get(name string) int64 {
	v, _ := s.Find(name)
	return v
}

// Find returns the value of an attribute, and whether s has it.
func (s State) Find(name string) (int64, bool) {
	const few = 12 // of so few attributes, one after the other is faster
	if len(s) > few {
		i, _ := s.index(name)
		s = s[i:min(i+1, len(s))]
	}
	for _, a := range s {
		if a.Name == name {
			return a.Value, true
		}
	}
	return 0, false
}

// index returns where an attribute is in s, or belongs, and whether it is there.
func (s State) index(name string) (int, bool) {
	return slices.BinarySearchFunc(s, name, func(a Attr, name string) int { return strings.Compare(a.Name, name) })
}

// AttributeName returns text as the name of an attribute. It makes no copy of a name that a
// limit without a name uses, except for the counters of a sliding window.
func AttributeName(text []byte) string {
	if n, ok := slotOf(string(text)); ok {
		return slotNames[n]
	}
	for _, name := range [...]string{activityCount, startAndCount, tat, every, since, asof, lent, top, ticket, attempts, opened, latest, strikes} {
		if string(text) == name {
			return name
		}
	}
	return string(text)
}
