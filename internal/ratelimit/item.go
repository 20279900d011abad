package ratelimit

import (
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
)

// A Key names an item.
type Key struct {
	UserID   string
	Activity string
	Window   int64 // floor(now / window) if the item counts one window; 0: the item serves forever
}

// An Item is what a store holds under a key. Nobody may change its slices.
type Item struct {
	State  policy.State
	IDs    IDs
	Unread []string // attributes that are neither whole numbers nor sets of ids
}

// IDs holds the requests that an item remembers, in sets that are sorted by name. No set
// is empty.
type IDs []IDSet

// An IDSet is an attribute of an item, such as ids or i05.
type IDSet struct {
	Name     string
	Elements []Element
}

// In returns the elements of the set with this name; nil: there is no such set.
func (ids IDs) In(name string) []Element {
	for _, set := range ids {
		if set.Name == name {
			return set.Elements
		}
	}
	return nil
}

// An Element is one element of a set of ids: an id, or an id with a note. Each id that an
// item keeps has the element without a note, because a repeat does not know the notes,
// and a condition can only look for a whole element. These are the notes:
//
//	note               beside the id of      meaning
//	1 to 1,000,000     a check               the number of a partial grant
//	above 1,000,000    a check               the place that a reservoir gave, or the time of the last renewal
//	WasRenewed         a renewed check       renewals can bring an id back to the set of its check, and an
//	                   a late job            update that was planned before them does not know their time
//	ReliedOn           a check               an attempt that found the id was admitted
//	below -1,000,000   a check               a time, negated: when its actions count, if that is later than its receipt
//	                   a renewed check       the same, and the time of the check
//	                   a release             the time of the check, if that was renewed
//
// A version that does not know a note ignores it.
type Element struct {
	ID   ID
	Note int64 // 0: none
}

// Notes that are no numbers.
const (
	WasRenewed = -1
	ReliedOn   = -2
)

// Write returns the item after w, and true. If the ids or the guard of w do not
// allow it, the result is the item as it is, and false. No later Write changes it.
func (i Item) Write(w Write) (Item, bool) {
	if !i.allows(w) {
		return i, false
	}
	return i.perform(w), true
}

// allows reports whether the ids and the guard of w allow it.
func (i Item) allows(w Write) bool {
	if _, counted := i.Find(w); counted || !i.has(w.Drop) || !i.has(w.RelyOn) || !w.Update.Holds(i.State) {
		return false
	}
	for note := range w.Unless {
		if slices.Contains(i.IDs.In(w.Drop.Set), Element{w.Drop.ID, note}) {
			return false
		}
	}
	return true
}

// perform returns the item after w. It does not check whether w is allowed.
func (i Item) perform(w Write) Item {
	forget := w.Forget()
	after := Item{State: w.Update.Apply(i.State), IDs: make(IDs, 0, len(i.IDs)+1)}
	for _, set := range i.IDs {
		if set.Name == w.Drop.Set {
			set.Elements = slices.Clone(set.Elements)
			for m := range w.Drops {
				set.Elements = slices.DeleteFunc(set.Elements, func(other Element) bool { return other == m })
			}
		}
		if len(set.Elements) > 0 && !slices.Contains(forget, set.Name) { // DynamoDB has no empty sets
			after.IDs = append(after.IDs, set)
		}
	}
	if into := w.Into(); into.Set != "" {
		at, ok := after.IDs.index(into.Set)
		if !ok {
			after.IDs = slices.Insert(after.IDs, at, IDSet{Name: into.Set})
		}
		set := &after.IDs[at]
		set.Elements = append(make([]Element, 0, len(set.Elements)+1), set.Elements...)
		for m := range w.Adds {
			if !slices.Contains(set.Elements, m) {
				set.Elements = append(set.Elements, m)
			}
		}
	}
	return after
}

// index returns where the set with this name is, or belongs, and whether it is there.
func (ids IDs) index(name string) (int, bool) {
	return slices.BinarySearchFunc(ids, name, func(set IDSet, name string) int { return strings.Compare(set.Name, name) })
}

// Find returns where the item keeps the id of w, with its note. It returns
// false if the item does not have that id.
func (i Item) Find(w Write) (Location, bool) {
	for k := range w.LookIn {
		if !i.has(k) {
			continue
		}
		for _, m := range i.IDs.In(k.Set) {
			if m.ID == k.ID {
				k.read(m.Note)
			}
		}
		return k, true
	}
	return Location{}, false
}

// has reports whether the item keeps k. Every item has the zero Location.
func (i Item) has(k Location) bool {
	return k.Set == "" || slices.Contains(i.IDs.In(k.Set), k.Element) && slices.Contains(i.IDs.In(k.Set), Element{ID: k.ID})
}

// unusable returns the attributes that w uses and that could not be read.
func (i Item) unusable(w Write) (attrs []string) {
	if len(i.Unread) == 0 {
		return nil
	}
	needed := slices.Collect(w.Update.Attributes)
	for k := range w.LookIn {
		needed = append(needed, k.Set)
	}
	return slices.DeleteFunc(slices.Clone(i.Unread), func(attr string) bool { return !slices.Contains(needed, attr) })
}

// Unusable returns the attributes of item that could not be read and that a check of r at
// now, in Unix milliseconds, needs. If there are none, the item is no trouble for a guard.
func (r Request) Unusable(now int64, item Item) []string {
	if len(item.Unread) == 0 {
		return nil
	}
	q := r.ask(Check, now)
	w := q.write
	w.Update, _ = q.in(nil).take(q.Policy.Max()) // this update names every attribute of the policy
	return item.unusable(w)
}
