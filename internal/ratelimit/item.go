package ratelimit

import (
	"maps"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// A Key names an item.
type Key struct {
	UserID   string
	Activity string
	Window   int64 // floor(now / window) if the item counts one window; 0: the item serves forever
}

// An Item is what a store holds under a key. Nobody may change its maps.
type Item struct {
	State  policy.State
	IDs    IDs
	Unread []string // attributes that are neither whole numbers nor sets of ids
}

// IDs holds the requests that an item remembers. The key is the name of the
// attribute that has them, such as ids or i05.
type IDs map[string][]Mark

// A Mark is one element of a set of ids. A request without a note has one
// element, its id. A request with a note has two elements: the id alone, and
// the id with the note. A repeat of the request does not know the note, and a
// condition can only look for a whole element, so the repeat looks for the id
// alone.
//
// A note is the place that a reservoir gave, or the number of actions of a
// partial grant.
type Mark struct {
	ID   ID
	Note int64 // 0: none
}

// Write returns the item after w, and true. If the ids or the guard of w do not
// allow it, Write returns the unchanged item and false. No later Write changes
// the result.
func (i Item) Write(w Write) (Item, bool) {
	if !i.allows(w) {
		return i, false
	}
	return i.perform(w), true
}

// allows reports whether the ids and the guard of w allow it.
func (i Item) allows(w Write) bool {
	_, counted := i.Find(w)
	return !counted && i.has(w.Drop) && w.Update.Holds(i.State)
}

// perform returns the item after w. Unlike Write, it does not check whether w
// is allowed.
func (i Item) perform(w Write) Item {
	after := Item{State: w.Update.Apply(i.State), IDs: maps.Clone(i.IDs)}
	if after.IDs == nil {
		after.IDs = make(IDs, 1)
	}
	if set := w.Drop.Set; set != "" {
		left := slices.DeleteFunc(slices.Clone(after.IDs[set]), func(m Mark) bool { return m.ID == w.Drop.ID })
		if after.IDs[set] = left; len(left) == 0 { // DynamoDB has no empty sets
			delete(after.IDs, set)
		}
	}
	for _, set := range w.Forget() {
		delete(after.IDs, set)
	}
	if into := w.Into(); into.Set != "" {
		marks := append(slices.Clip(after.IDs[into.Set]), Mark{ID: into.ID})
		if into.Note != 0 {
			marks = append(marks, into.Mark)
		}
		after.IDs[into.Set] = marks
	}
	return after
}

// Find returns where the item keeps the id of w, with its note. It returns
// false if the item does not have that id.
func (i Item) Find(w Write) (Kept, bool) {
	for k := range w.LookIn {
		if !i.has(k) {
			continue
		}
		for _, m := range i.IDs[k.Set] {
			if m.ID == k.ID {
				k.Note = max(k.Note, m.Note)
			}
		}
		return k, true
	}
	return Kept{}, false
}

// has reports whether the item keeps k. Every item has the zero Kept.
func (i Item) has(k Kept) bool {
	return k.Set == "" || slices.ContainsFunc(i.IDs[k.Set], func(m Mark) bool { return m.ID == k.ID })
}

// unreadable returns an attribute that w uses and that could not be read, or ""
// if there is none.
func (i Item) unreadable(w Write) string {
	if len(i.Unread) == 0 {
		return ""
	}
	for attr := range w.Update.Attributes {
		if slices.Contains(i.Unread, attr) {
			return attr
		}
	}
	for k := range w.LookIn {
		if slices.Contains(i.Unread, k.Set) {
			return k.Set
		}
	}
	return ""
}
