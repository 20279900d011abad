package ratelimit

import (
	"crypto/sha256"
	"maps"
	"slices"
)

// A Key names an item.
type Key struct {
	UserID   string
	Activity string
	Window   int64 // the window that the item counts: floor(now / window). 0: the item serves for ever
}

// An Item is what a store holds under a key.
type Item struct {
	State State
	IDs   IDs // the requests counted in it
}

// IDs are the requests that an item remembers, by the name of the attribute
// that holds them, in the order in which they were counted if that was asked
// for (see [Write]).
type IDs map[string][]ID

// An ID is a request's id as an item keeps it: the first 8 bytes of its
// SHA-256. Within one item's few ids two that are alike by chance are one in
// 10^15, and alike by intent costs 2^32 tries and gains one action.
type ID [8]byte

// NewID hashes a request's id.
func NewID(requestID string) ID {
	sum := sha256.Sum256([]byte(requestID))
	return ID(sum[:8])
}

// A Write is an update of one item in the name of one request.
type Write struct {
	Key     Key
	Update  Update
	ID      ID    // the request
	Release bool  // the item must hold ID, and gives it up; otherwise it must not, and keeps it
	Ordered bool  // its ids keep their order; the same for every write of an item
	Now     int64 // Unix milliseconds: an item first written now was created now, and ids are kept by it
	Expires int64 // Unix seconds: from then on the item can no longer matter; a release leaves it as it is
}

// A Memory says where an item keeps the ids of requests at a moment.
//
// An item of one window keeps all it counted. One that serves for ever keeps
// them by generations of 10 s: it looks in this one and the last, so that it
// remembers for 10 to 20 s, and in the next, which a clock ahead or a repeat that
// overtook this write may have begun. Each write drops the others. Their names go
// round after 310 s, for what to drop must be known without a look at the item.
//
// Where order matters the next generation is dropped, too: of an item that was
// left alone for 300 s it would hold old ids, and they would count as later ones.
type Memory struct {
	Into   string   // a request counted now is kept here
	In     []string // one that is in any of these was counted
	Forget []string // these are too old
}

const (
	generation  = 10_000 // milliseconds
	generations = 31     // prime: who comes in even periods of minutes meets all of them
)

// around are the names of the generations twice, so that any 31 that follow one
// another are a slice.
var around = func() (names [2 * generations]string) {
	for i := range names {
		g := i % generations
		names[i] = string([]byte{'i', byte('0' + g/10), byte('0' + g%10)})
	}
	return names
}()

var wholeWindow = Memory{Into: "ids", In: []string{"ids"}}

// Memory is where the item of w keeps ids at w's time.
func (w Write) Memory() Memory {
	if w.Key.Window != 0 {
		return wholeWindow
	}
	g := int(w.Now/generation%generations) + generations
	m := Memory{Into: around[g], In: []string{around[g], around[g-1]}, Forget: around[g-generations+1 : g-1]}
	if !w.Ordered {
		m.In, m.Forget = append(m.In, around[g-generations+1]), m.Forget[1:]
	}
	return m
}

// Later says how many requests were counted in the item after the one of w, or
// false where that isn't in it. The number is of use only where ids are ordered.
func (i Item) Later(w Write) (int, bool) {
	later := 0
	for _, name := range w.Memory().In {
		if at := slices.Index(i.IDs[name], w.ID); at >= 0 {
			return later + len(i.IDs[name]) - 1 - at, true
		}
		later += len(i.IDs[name])
	}
	return 0, false
}

// Has says whether the request of w was counted in the item.
func (i Item) Has(w Write) bool {
	_, ok := i.Later(w)
	return ok
}

// Write returns the item after w and true, or the item itself and false where
// w's id or guard forbids it. What it returns shares no memory that a later
// Write changes.
func (i Item) Write(w Write) (Item, bool) {
	if i.Has(w) != w.Release || !w.Update.Holds(i.State) {
		return i, false
	}
	return i.perform(w), true
}

// perform is Write without its conditions.
func (i Item) perform(w Write) Item {
	after := Item{State: w.Update.Apply(i.State), IDs: maps.Clone(i.IDs)}
	if after.IDs == nil {
		after.IDs = make(IDs, 1)
	}
	m := w.Memory()
	if w.Release {
		for _, name := range m.In {
			after.drop(name, w.ID)
		}
		return after
	}
	for _, name := range m.Forget {
		delete(after.IDs, name)
	}
	after.IDs[m.Into] = append(slices.Clip(after.IDs[m.Into]), w.ID)
	return after
}

// drop removes an id; a set of none is none.
func (i Item) drop(name string, id ID) {
	left := slices.DeleteFunc(slices.Clone(i.IDs[name]), func(other ID) bool { return other == id })
	if i.IDs[name] = left; len(left) == 0 {
		delete(i.IDs, name)
	}
}

// size is how many requests the item remembers.
func (i Item) size() (n int) {
	for _, ids := range i.IDs {
		n += len(ids)
	}
	return n
}
