// Package storetest holds a [ratelimit.Store] to what that interface promises.
package storetest

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// Run runs the suite: each subtest, named after the sentence it holds the store
// to, on a store of its own that open makes empty. What no Store shows, when its
// items expire, is for [RunExpires].
func Run(t *testing.T, open func(testing.TB) ratelimit.Store) {
	for _, promise := range []struct {
		name string
		test func(*testing.T, ratelimit.Store)
	}{
		{"performs w in one atomic step", atomicStep},
		{"whole where its guard holds and its id allows it, else not at all", wholeOrNotAtAll},
		{"an item that does not exist is as one that is empty", absentIsEmpty},
		{"every attribute compares at and around the bound", bounds},
		{"a release needs the id and gives it up", release},
		{"Read returns the item with every write that was answered before", readSeesWrites},
		{"an item that serves for ever remembers a request for 10 to 20 s", remembers},
		{"the order in which requests were counted is kept where it is asked for", keepsOrder},
		{"Delete removes the item, its ids included, and nothing else", deletes},
		{"what it returns shares no memory that a later Write changes", sharesNothing},
		{"does what Item.Write does, step by step", asTheModel},
	} {
		t.Run(promise.name, func(t *testing.T) { promise.test(t, open(t)) })
	}
}

const now = 1_700_000_000_000

func key(user string) ratelimit.Key {
	return ratelimit.Key{UserID: user, Activity: "act", Window: 7}
}

// write counts one action of the request id where at most limit-1 are counted.
func write(user, id string, limit int64) ratelimit.Write {
	return ratelimit.Write{
		Key: key(user), ID: ratelimit.NewID(id), Now: now, Expires: now/1000 + 60,
		Update: ratelimit.Update{
			If:   [][]ratelimit.Term{{ratelimit.AtMost("n", limit-1)}},
			Acts: []ratelimit.Act{{Verb: ratelimit.Add, Attr: "n", Value: 1}},
		},
	}
}

// giveBack releases what write counted.
func giveBack(user, id string) ratelimit.Write {
	w := write(user, id, 0)
	w.Release = true
	w.Update = ratelimit.Update{Acts: []ratelimit.Act{{Verb: ratelimit.Add, Attr: "n", Value: -1}}}
	return w
}

// ids are the requests that a window's item remembers.
func ids(requests ...string) ratelimit.IDs {
	list := make([]ratelimit.ID, len(requests))
	for i, r := range requests {
		list[i] = ratelimit.NewID(r)
	}
	return ratelimit.IDs{"ids": list}
}

func update(t testing.TB, s ratelimit.Store, w ratelimit.Write, want bool) ratelimit.Item {
	t.Helper()
	item, done, err := s.Update(t.Context(), w)
	if err != nil || done != want {
		t.Fatalf("Update(%+v) = %v, %v, want %v", w, done, err, want)
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
	less := cmpopts.SortSlices(func(a, b ratelimit.ID) bool { return slices.Compare(a[:], b[:]) < 0 })
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

func atomicStep(t *testing.T, s ratelimit.Store) {
	const callers, limit = 24, 10
	var performed atomic.Int64
	done := make(chan error, callers)
	for i := range callers {
		go func() {
			_, ok, err := s.Update(t.Context(), write("u", string(rune('a'+i)), limit))
			if ok {
				performed.Add(1)
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	item := read(t, s, key("u"))
	if performed.Load() != limit || item.State["n"] != limit || len(item.IDs["ids"]) != limit {
		t.Errorf("%d of %d updates at once were performed, and the item is %v; want %d", performed.Load(), callers, item, limit)
	}
}

func wholeOrNotAtAll(t *testing.T, s ratelimit.Store) {
	one := update(t, s, write("u", "a", 2), true)
	same(t, "the item after a write", one, ratelimit.Item{State: ratelimit.State{"n": 1}, IDs: ids("a")})
	same(t, "the item that a counted id brings back", update(t, s, write("u", "a", 2), false), one)
	two := update(t, s, write("u", "b", 2), true)
	same(t, "the item that a guard brings back", update(t, s, write("u", "c", 2), false), two)
	same(t, "the item after refusals", read(t, s, key("u")), two)

	set := write("u", "d", 3)
	set.Update.Acts = []ratelimit.Act{
		{Verb: ratelimit.Set, Attr: "x", Value: -5},
		{Verb: ratelimit.Add, Attr: "y", Value: 9},
		{Verb: ratelimit.Delete, Attr: "n"},
	}
	want := ratelimit.Item{State: ratelimit.State{"x": -5, "y": 9}, IDs: ids("a", "b", "d")}
	same(t, "the item after Set, Add and Delete at once", update(t, s, set, true), want)
}

func absentIsEmpty(t *testing.T, s ratelimit.Store) {
	same(t, "an item never written", read(t, s, key("nobody")), ratelimit.Item{})
	refused := write("u", "a", 0)
	same(t, "what a refused first write brings back", update(t, s, refused, false), ratelimit.Item{})
	same(t, "the item after it", read(t, s, key("u")), ratelimit.Item{})
}

func bounds(t *testing.T, s ratelimit.Store) {
	const least, most = math.MinInt64, math.MaxInt64
	for _, tt := range []struct {
		term        func(attr string) ratelimit.Term
		absent, one bool // does the term hold where the attribute is missing, and where it is 1
	}{
		{func(attr string) ratelimit.Term { return ratelimit.AtMost(attr, -1) }, false, false},
		{func(attr string) ratelimit.Term { return ratelimit.AtMost(attr, 0) }, true, false},
		{func(attr string) ratelimit.Term { return ratelimit.AtMost(attr, 1) }, true, true},
		{func(attr string) ratelimit.Term { return ratelimit.Within(attr, 1, 1) }, false, true},
		{func(attr string) ratelimit.Term { return ratelimit.Within(attr, 0, 2) }, false, true},
		{func(attr string) ratelimit.Term { return ratelimit.Within(attr, -1, 0) }, false, false},
		{func(attr string) ratelimit.Term { return ratelimit.Within(attr, 2, 3) }, false, false},
		{func(attr string) ratelimit.Term { return ratelimit.Within(attr, least, 0) }, false, false},
		{func(attr string) ratelimit.Term { return ratelimit.Within(attr, least, 1) }, false, true},
		{func(attr string) ratelimit.Term { return ratelimit.Within(attr, 1, most) }, false, true},
		{func(attr string) ratelimit.Term { return ratelimit.Within(attr, 2, most) }, false, false},
		{ratelimit.Missing, true, false},
	} {
		for _, attr := range []string{"absent", "n"} {
			if err := s.Delete(t.Context(), key("u")); err != nil {
				t.Fatal(err)
			}
			update(t, s, write("u", "first", 1), true)
			w := write("u", "second", 9)
			w.Update.If = [][]ratelimit.Term{{tt.term(attr)}}
			update(t, s, w, attr == "n" && tt.one || attr == "absent" && tt.absent)
		}
	}
}

func release(t *testing.T, s ratelimit.Store) {
	back := giveBack("u", "a")
	same(t, "the item after a release of nothing", update(t, s, back, false), ratelimit.Item{})
	one := update(t, s, write("u", "b", 5), true)
	update(t, s, write("u", "a", 5), true)
	same(t, "the item after a release", update(t, s, back, true), one)
	same(t, "the item after the same again", update(t, s, back, false), one)
	update(t, s, write("u", "a", 5), true) // new again
}

func readSeesWrites(t *testing.T, s ratelimit.Store) {
	for i := range 20 {
		wrote := update(t, s, write("u", string(rune('a'+i)), 20), true)
		same(t, "the item read after a write", read(t, s, key("u")), wrote)
	}
}

func deletes(t *testing.T, s ratelimit.Store) {
	update(t, s, write("u", "a", 5), true)
	other := write("u", "a", 5)
	other.Key.Window++
	kept := update(t, s, other, true)
	for range 2 { // the second time there is nothing to delete
		if err := s.Delete(t.Context(), key("u")); err != nil {
			t.Fatal(err)
		}
		same(t, "the item after Delete", read(t, s, key("u")), ratelimit.Item{})
	}
	same(t, "the item of the next window", read(t, s, other.Key), kept)
	update(t, s, write("u", "a", 5), true) // its id went with it
}

func sharesNothing(t *testing.T, s ratelimit.Store) {
	var got, want []ratelimit.Item // by how many requests are counted in each
	var counted []string
	for i := range 9 {
		counted = append(counted, string(rune('a'+i)))
		got = append(got, update(t, s, write("u", counted[i], 9), true))
		want = append(want, ratelimit.Item{State: ratelimit.State{"n": int64(i + 1)}, IDs: ids(counted...)})
	}
	for _, item := range got {
		x, _ := item.Write(write("u", "x", 99))
		y, _ := item.Write(write("u", "y", 99))
		if !x.Has(write("u", "x", 99)) || !y.Has(write("u", "y", 99)) {
			t.Errorf("of two writes of %v one is in the other's result: %v and %v", item, x, y)
		}
	}
	back := giveBack("u", "a")
	update(t, s, back, true)
	for i := range got {
		same(t, "an item returned before other writes", got[i], want[i])
	}
}
