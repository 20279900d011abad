package ratelimit

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

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

// A Location is an id with its notes, and the set where an item keeps it. The zero Location is no
// id.
type Location struct {
	Set         string // the attribute's name
	Element            // the id, and its largest note above 0
	First, Last int64  // the earliest and the latest of the times that it has as notes, in Unix milliseconds; 0: none
	ReliedOn    bool   // it has the note ReliedOn
}

// read adds a note to k.
func (k *Location) read(note int64) {
	switch {
	case note > 0:
		k.Note = max(k.Note, note)
	case note == ReliedOn:
		k.ReliedOn = true
	case note < -MaxReleased:
		if k.First == 0 || -note < k.First {
			k.First = -note
		}
		k.Last = max(k.Last, -note)
	}
}

// An item keeps the ids of its requests in sets, so that a repeat of a request
// is recognized. There are two ways:
//
//   - A window's item with a limit of up to 100 (Write.KeepAll) keeps all its ids
//     in the set "ids".
//   - Any other item has one set for each generation of 7 s. A write adds its id
//     to the set of the current generation. It looks for the id in that set, in
//     the three previous ones, and in the next one, which a clock that is ahead
//     may have begun. With a log it also looks in the one after that, see LookIn. It
//     removes all other sets except the one after the next: a release on a clock that
//     is ahead may have kept its id there. So an item remembers an id for 21 to 28 s,
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
	earlier     = policy.PeriodsKept // previous generations that a write looks in
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

// span returns the sets where w keeps its id.
func (w *Write) span() *span {
	if w.Hold {
		return &held
	}
	return &brief
}

// certain is how long an id is found, even if clocks differ by as much as they may.
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

// IsSet reports whether name is the name of a set of ids: ids, i00 to i99 or h00 to
// h99.
func IsSet(name string) bool {
	if len(name) == 3 && (name[0] == 'i' || name[0] == 'h') && '0' <= name[1] && name[1] <= '9' {
		return '0' <= name[2] && name[2] <= '9'
	}
	return name == wholeSet
}

// AttributeName returns text as the name of an attribute, or of a set of ids. It makes no
// copy of the names that most items have.
func AttributeName(text []byte) string {
	if IsSet(string(text)) && len(text) == 3 {
		of := &brief
		if text[0] == 'h' {
			of = &held
		}
		if n := int(text[1]-'0')*10 + int(text[2]-'0'); n < generations {
			return of.names[n]
		}
	}
	if string(text) == wholeSet {
		return wholeSet
	}
	return policy.AttributeName(text)
}

// generation returns the number of w's generation, counted from 1970. Index is the
// index of that generation's name among the names: 37 to 73, in the second half, so
// that the names of earlier generations lie before it.
func (w *Write) generation() (number int64, index int) {
	number = max(0, w.Now) / int64(policy.Behind/time.Millisecond)
	if w.Hold {
		number = max(0, w.Now) / int64(policy.HeldPeriod/time.Millisecond)
	}
	return number, int(number%generations) + generations
}

// in returns where w's id is kept in the generation that is this many steps from
// w's own: -1 is the previous one, 0 the current one, and 1 the next one.
func (w *Write) in(steps int) Location {
	number, index := w.generation()
	return Location{Set: w.span().names[(index+steps)%(2*generations)], Element: Element{ID: w.ID.mixed(number + int64(steps))}}
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

// Into returns where w keeps its id or, if it has none, where it sets a mark: RelyOn.
//
// An update can change each attribute only once. So a write that drops an id from
// a set keeps its own in another set. Later writes look there, too. For example, a
// release in generation 9 that drops an id from i09 keeps its own id in i10.
func (w Write) Into() Location {
	into := w.in(0)
	switch {
	case w.ID == (ID{}):
		return w.RelyOn
	case w.KeepAll:
		into.Set, into.ID = wholeSet, w.ID
	case into.Set == w.Drop.Set:
		into = w.in(1)
	}
	into.Note, into.First, into.Last = w.Note, w.First, w.Last
	return into
}

// Adds calls yield with each element that w adds to the set of Into.
func (w Write) Adds(yield func(Element) bool) {
	switch into := w.Into(); {
	case into.Set == "":
	case w.ID == ID{}:
		yield(Element{into.ID, ReliedOn})
	default:
		into.elements(w.Note != 0 && w.Drop.Set != "", yield)
	}
}

// Drops calls yield with each element that w removes from the set of Drop, if it can be there.
// The note ReliedOn stays. A give-back of the attempt that counted can be on its way for
// longer than the check counts. It must not remove what a later check of the same id counted.
func (w Write) Drops(yield func(Element) bool) {
	if w.Drop.Set != "" {
		w.Drop.elements(true, yield)
	}
}

// elements calls yield with the id alone, and with each of its notes except ReliedOn. If
// renewed is set, WasRenewed is one of them.
func (k Location) elements(renewed bool, yield func(Element) bool) {
	notes := [...]int64{k.Note, 0, -k.First, -k.Last}
	if renewed {
		notes[1] = WasRenewed
	}
	if k.First == k.Last {
		notes[3] = 0
	}
	if !yield(Element{ID: k.ID}) {
		return
	}
	for _, note := range notes {
		if note != 0 && !yield(Element{k.ID, note}) {
			return
		}
	}
}

// Unless calls yield with each note that makes the store refuse w, if Drop has it.
func (w Write) Unless(yield func(int64) bool) {
	if w.Drop.Set == "" {
		return
	}
	if (w.Renewed && w.Drop.Note == 0 || w.GivesBack) && !yield(WasRenewed) {
		return
	}
	if w.GivesBack {
		yield(ReliedOn)
	}
}

// LookIn calls yield with each place where w's id can be, and then its other id, until yield
// returns false. A window's item can keep ids in both ways, because one tier can have a
// limit of up to 100 and another tier a higher one. The id that w drops is not among
// them: a renewal, or a late job, drops its id from one set and keeps it in another one.
// That can be the set after the next, if a clock that is ahead moves it again in its own
// generation.
func (w Write) LookIn(yield func(Location) bool) {
	if w.ID == (ID{}) {
		return
	}
	if w.Key.Window != 0 && !yield(Location{Set: wholeSet, Element: Element{ID: w.ID}}) {
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
	w.ID, w.OtherID = w.OtherID, ID{}
	w.LookIn(yield)
}

// Forget returns the sets that w removes. Six generations stay: the three
// previous ones, the current one and the next two. A write that keeps no id in a
// generation removes nothing, and neither does one with KeepOld.
func (w Write) Forget() []string {
	if w.ID == (ID{}) || w.KeepAll || w.KeepOld {
		return nil
	}
	_, index := w.generation()
	return w.span().names[index-generations+3 : index-earlier]
}
