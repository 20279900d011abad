package ratelimit

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

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
// the id with the note. A repeat does not know the note, and a condition can only
// look for a whole element, so the repeat looks for the id alone.
//
// A note is the place that a reservoir gave, the number of a partial grant, or the
// time of a renewal. An id that was renewed, or moved to a new place, has a third element,
// with the note WasRenewed. Renewals can bring an id back to the set of its check. An
// update that was planned before them does not know their time, so it looks for that note.
type Mark struct {
	ID   ID
	Note int64 // 0: none
}

// WasRenewed is the second note of a renewed id.
const WasRenewed = -1

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
	_, counted := i.Find(w)
	again := w.Renewed && w.Drop.Note == 0 && slices.Contains(i.IDs[w.Drop.Set], Mark{w.Drop.ID, WasRenewed})
	return !counted && i.has(w.Drop) && !again && w.Update.Holds(i.State)
}

// perform returns the item after w. It does not check whether w is allowed.
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
			if w.Drop.Set != "" {
				marks = append(marks, Mark{into.ID, WasRenewed})
			}
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
	return k.Set == "" || slices.Contains(i.IDs[k.Set], k.Mark) && slices.Contains(i.IDs[k.Set], Mark{ID: k.ID})
}

// unreadable returns an attribute that w uses and that could not be read; "": none.
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

// An ID is a request's id as an item keeps it: the first 6 bytes of its SHA-256.
// In an item with 400 ids, a new id equals one of them with a chance of 1 in
// 7 * 10^11. Then the request is taken for a repeat, and is not counted. Two equal
// ids are of no use to an attacker: repeating one id does the same.
type ID [6]byte

// NewID hashes a request's id.
func NewID(requestID string) ID {
	sum := sha256.Sum256([]byte(requestID))
	return ID(sum[:])
}

// A Kept is an id and the set in which an item keeps it. The zero Kept is no id.
type Kept struct {
	Set string // the attribute's name
	Mark
}

// An item keeps the ids of its requests in sets, so that a repeat of a request
// is recognized. There are two ways:
//
//   - A window's item with a limit of up to 100 (Write.Whole) keeps all its ids
//     in the set "ids".
//   - Any other item has one set for each generation of 7 s. A write adds its id
//     to the set of the current generation. It looks for the id in that set, in
//     the three previous ones, and in the next one, which a clock that is ahead
//     may have begun. With a log it also looks in the one after that, see LookIn. It
//     removes all other sets but the one after the next, in which a release on a clock
//     that is ahead may have kept its id. So an item remembers an id for 21 to 28 s,
//     less the difference between clocks. The package promises 20 s, less that.
//
// For example, a write 65 s after 1970 is in generation 9, which lasts from second
// 63 to second 70. The write adds its id to i09, looks in i06 to i10, and removes
// the other sets but i11. A repeat at second 90 still finds the id in i09. A write
// from second 91 on removes i09.
//
// A write can be late: it lands up to 5 s after its time, on a clock that differs
// by up to 2 s. So it can be 7 s behind the item. A generation lasts 7 s too, so a
// late write is at most one generation behind, and still looks in the next set.
//
// The sets are named i00 to i36. The names repeat every 259 s, so that a write
// can list the sets to remove without reading the item. If nobody writes for
// 259 s, an old set is still there under the name of the current one. Each id is
// mixed with the number of its generation, so that an old id does not match. A
// client that calls once a minute cycles through every name, because 37 is prime.
// A client whose period is a multiple of 259 s always meets the same name, and its old
// ids stay there, 6 bytes for each, until it comes at another time.
//
// A check that holds its receipt keeps its id in the same way, but in the sets h00 to
// h36, each for a generation of 5 minutes. So the item remembers it for 15 to 20
// minutes.
const (
	earlier     = policy.PeriodsKept // previous generations in which a write looks
	generations = 37                 // names
)

// A span is how long the sets of ids serve, in milliseconds.
type span struct {
	promised int64 // how long an id is remembered at least, on one clock; a release works as long
	names    [2 * generations]string
}

var (
	brief = span{policy.Promised.Milliseconds(), setNames('i')}
	held  = span{policy.HeldPromised.Milliseconds(), setNames('h')}
)

// span returns the sets in which w keeps its id.
func (w *Write) span() *span {
	if w.Hold {
		return &held
	}
	return &brief
}

// certain is how long an id is found, also if clocks differ by as much as they may.
func (s *span) certain() int64 { return s.promised - policy.ClocksApart.Milliseconds() }

// wholeSet is the set of an item that keeps the ids of its checks as long as it
// lives. That item keeps ids of releases for 21 to 28 s, or they would add up.
const wholeSet = "ids"

// setNames returns the names i00 to i36 twice. So any 37 consecutive names are a
// slice of them, such as i35, i36, i00, i01, ...
func setNames(letter byte) (names [2 * generations]string) {
	for i := range names {
		g := i % generations
		names[i] = string([]byte{letter, byte('0' + g/10), byte('0' + g%10)})
	}
	return names
}

// IsSet reports whether name is that of a set of ids: ids, i00 to i99 or h00 to h99.
func IsSet(name string) bool {
	if len(name) == 3 && (name[0] == 'i' || name[0] == 'h') && '0' <= name[1] && name[1] <= '9' {
		return '0' <= name[2] && name[2] <= '9'
	}
	return name == wholeSet
}

// generation returns the number of w's generation, counted from 1970. Index is
// where the names have that of that generation: 37 to 73, in the second half, so that
// the names of earlier generations lie before it.
func (w *Write) generation() (number int64, index int) {
	number = max(0, w.Now) / int64(policy.Behind/time.Millisecond)
	if w.Hold {
		number = max(0, w.Now) / int64(policy.HeldPeriod/time.Millisecond)
	}
	return number, int(number%generations) + generations
}

// in returns where w's id is kept in the generation that is this many steps from
// w's own: -1 is the previous one, 0 the current one, and 1 the next one.
func (w *Write) in(steps int) Kept {
	number, index := w.generation()
	return Kept{Set: w.span().names[(index+steps)%(2*generations)], Mark: Mark{ID: w.ID.mixed(number + int64(steps))}}
}

// mixed returns the id as the set of a generation holds it.
func (id ID) mixed(generation int64) (mixed ID) {
	// 2^48 divided by the golden ratio. Its products with two close numbers
	// differ in many bits.
	const spread = 0x9E3779B97F4B
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], id.number()^uint64(generation)*spread)
	return ID(b[2:])
}

// number returns the id as a number of 48 bits.
func (id ID) number() uint64 {
	var b [8]byte
	copy(b[2:], id[:])
	return binary.BigEndian.Uint64(b[:])
}

// Into returns where w keeps its id. It returns the zero Kept if w keeps none.
//
// An update can change each attribute only once. So a write that drops an id
// from a set keeps its own in another set in which later writes look. For example,
// a release in generation 9 that drops an id from i09 keeps its own id in i10.
func (w Write) Into() Kept {
	switch {
	case w.ID == (ID{}):
		return Kept{}
	case w.Whole:
		return Kept{wholeSet, Mark{w.ID, w.Note}}
	}
	into := w.in(0)
	if into.Set == w.Drop.Set {
		into = w.in(1)
	}
	into.Note = w.Note
	return into
}

// LookIn calls yield with each place where w's id can be, until yield returns
// false. A window's item can keep ids in both ways, because one tier can have a
// limit of up to 100 and another tier a higher one. The id that w drops is not among
// them: a renewal, or a late job, drops its id from one set and keeps it in another one.
// That can be the set after the next, if a clock that is ahead moves it again in its own
// generation.
func (w Write) LookIn(yield func(Kept) bool) {
	if w.ID == (ID{}) {
		return
	}
	if w.Key.Window != 0 && !yield(Kept{wholeSet, Mark{ID: w.ID}}) {
		return
	}
	later := 1
	if w.Renewed {
		later = 2
	}
	for steps := -earlier; steps <= later; steps++ {
		if k := w.in(steps); (k.Set != w.Drop.Set || k.ID != w.Drop.ID) && !yield(k) {
			return
		}
	}
}

// Forget returns the sets that w removes. Six generations stay: the three
// previous ones, the current one and the next two. A write that keeps no id in a
// generation removes nothing.
func (w Write) Forget() []string {
	if w.ID == (ID{}) || w.Whole {
		return nil
	}
	_, index := w.generation()
	return w.span().names[index-generations+3 : index-earlier]
}
