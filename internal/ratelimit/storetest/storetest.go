// Package storetest tests that a [ratelimit.Store] does what the interface
// promises. For a store of your own, run the suite in a test of its package:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(testing.TB) ratelimit.Store { return newEmptyStore(t) })
//	}
//
// If the store keeps Write.Expires, run [RunExpires], too.
package storetest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// Run runs the suite. Each subtest is named after the sentence that it tests.
// Each subtest calls open, which must return an empty store. [RunExpires] tests
// when items expire, which no method of a Store shows.
func Run(t *testing.T, open func(testing.TB) ratelimit.Store) {
	for _, promise := range []struct {
		name string
		test func(*testing.T, ratelimit.Store)
	}{
		{"performs w in one atomic step", atomicStep},
		{"either all of w happens or nothing does", wholeOrNotAtAll},
		{"an item that does not exist is like an empty one", absentIsEmpty},
		{"every attribute compares at and around the bound", bounds},
		{"an update that drops an id needs it and removes it", drops},
		{"an update can drop one id and keep another", dropsAndKeeps},
		{"an id and another one refuse an update", otherIDs},
		{"a note is kept with its id and dropped with it", notes},
		{"Read returns the item including every write that was answered before", readSeesWrites},
		{"an item that serves forever remembers an id for 21 to 28 s", remembers},
		{"an item remembers a held id for 15 to 20 minutes", remembersHeld},
		{"an update can drop an id and keep it with a note", renews},
		{"an update drops an id only with its note", renewsElsewhere},
		{"a give-back is refused if its id has a mark", marks},
		{"a window's item remembers its ids as long as it lives", remembersWhole},
		{"an id does not match one of 259 s ago", forgetsOldNames},
		{"Delete removes the item with its ids and nothing else", deletes},
		{"the item it returns shares no memory that a later write changes", sharesNothing},
		{"does what Item.Write does, step by step", likeTheModel},
	} {
		t.Run(promise.name, func(t *testing.T) { promise.test(t, open(t)) })
	}
}

// now begins a generation of ids.
const now = 1_700_000_400_000

func key(user string) ratelimit.Key {
	return ratelimit.Key{UserID: user, Activity: "act", Window: 7}
}

// write counts one action of the request id if at most limit-1 are counted.
func write(user, id string, limit int64) ratelimit.Write {
	return ratelimit.Write{
		Key: key(user), ID: ratelimit.NewID(id), KeepAll: true, Now: now, Expires: now/1000 + 60,
		Update: policy.Update{
			If:   [][]policy.Term{{policy.AtMost("n", limit-1)}},
			Acts: []policy.Act{{Verb: policy.Add, Attr: "n", Value: 1}},
		},
	}
}

// forever makes w a write of an item that serves forever, some milliseconds
// after now.
func forever(w ratelimit.Write, after int64) ratelimit.Write {
	w.Key.Window, w.KeepAll, w.Now = 0, false, now+after
	return w
}

// giveBack takes back what w counted, and drops its id from where item keeps
// it.
func giveBack(w ratelimit.Write, item ratelimit.Item) ratelimit.Write {
	kept, ok := item.Find(w)
	if !ok {
		w.LookIn(func(k ratelimit.Location) bool {
			kept = k
			return false
		})
	}
	return ratelimit.Write{
		Key: w.Key, Now: w.Now, Drop: kept,
		Update: policy.Update{Acts: []policy.Act{{Verb: policy.Add, Attr: "n", Value: -1}}},
	}
}

// ids returns the requests that a window's item remembers.
func ids(requests ...string) ratelimit.IDs {
	marks := make([]ratelimit.Element, len(requests))
	for i, r := range requests {
		marks[i].ID = ratelimit.NewID(r)
	}
	return ratelimit.IDs{{Name: "ids", Elements: marks}}
}

func update(t testing.TB, s ratelimit.Store, w ratelimit.Write, want bool) ratelimit.Item {
	t.Helper()
	item, done, err := s.Update(t.Context(), w)
	if err != nil || done != want {
		t.Fatalf("Update(%+v) = %v, %v, %v, want %v", w, item, done, err, want)
	}
	return item
}

// fataler is a testing.T or a rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func same(t fataler, what string, got, want ratelimit.Item) {
	t.Helper()
	less := cmpopts.SortSlices(func(a, b ratelimit.Element) int {
		if c := slices.Compare(a.ID[:], b.ID[:]); c != 0 {
			return c
		}
		return int(a.Note - b.Note)
	})
	if diff := cmp.Diff(want, got, less, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func read(t testing.TB, s ratelimit.Store, k ratelimit.Key) ratelimit.Item {
	t.Helper()
	item, err := s.Read(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return item
}
