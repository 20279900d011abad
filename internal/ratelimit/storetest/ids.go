package storetest

import (
	"fmt"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

func drops(t *testing.T, s ratelimit.Store) {
	a, b := write("u", "a", 5), write("u", "b", 5)
	back := giveBack(a, ratelimit.Item{})
	same(t, "the item after a release of nothing", update(t, s, back, false), ratelimit.Item{})
	one := update(t, s, b, true)
	update(t, s, a, true)
	same(t, "the item after a release", update(t, s, back, true), one)
	same(t, "the item after the same again", update(t, s, back, false), one)
	update(t, s, a, true) // it is new again
}

// A write that drops an id of the current 7 s and keeps another one puts it
// into the next set, because an update can change an attribute only once.
func dropsAndKeeps(t *testing.T, s ratelimit.Store) {
	for _, age := range []int64{0, 6_999, 7_000, 10_000, 19_999, 27_999} {
		user := fmt.Sprint("u", age)
		w := forever(write(user, "a", 5), 0)
		item := update(t, s, w, true)
		later := forever(w, age)
		back := giveBack(later, item)
		back.ID = ratelimit.NewID("release a")
		item = update(t, s, back, true)
		if _, ok := item.Find(later); ok {
			t.Errorf("the dropped id is still found after %d ms", age)
		}
		if _, ok := item.Find(back); !ok {
			t.Errorf("the release's own id is not found after %d ms: %v", age, item)
		}
		update(t, s, back, false)
	}
}

// A write is refused by its other id, too.
func otherIDs(t *testing.T, s ratelimit.Store) {
	for _, w := range []ratelimit.Write{write("u", "a", 5), forever(write("u", "a", 5), 0)} {
		update(t, s, w, true)
		other := w
		other.ID, other.OtherID = ratelimit.NewID("b"), w.ID
		if item := update(t, s, other, false); item.State.Get("n") != 1 {
			t.Errorf("beside the other id, the item counts %d, want 1", item.State.Get("n"))
		}
		other.OtherID = ratelimit.NewID("c")
		update(t, s, other, true)
	}
}

func notes(t *testing.T, s ratelimit.Store) {
	for _, w := range []ratelimit.Write{write("u", "a", 5), forever(write("u", "a", 5), 0)} {
		w.Note = 1_700_000_010_000
		item := update(t, s, w, true)
		if kept, ok := item.Find(w); !ok || kept.Note != w.Note {
			t.Errorf("the item keeps %+v, %v, want the note %d", kept, ok, w.Note)
		}
		again := w
		again.Note = 5
		update(t, s, again, false)
		if item := update(t, s, giveBack(w, item), true); len(item.IDs) != 0 {
			t.Errorf("after the id was dropped the item keeps %v, want nothing", item.IDs)
		}
	}
}

func remembers(t *testing.T, s ratelimit.Store) {
	var item ratelimit.Item
	at := func(id string, after int64, want bool) {
		t.Helper()
		item = update(t, s, forever(write("u", id, 1000), after), want)
	}
	back := func(id string, after int64, want bool) {
		t.Helper()
		item = update(t, s, giveBack(forever(write("u", id, 1000), after), item), want)
	}
	at("a", 0, true)
	at("a", 6_999, false)
	at("b", 6_999, true)
	at("b", 7_000, false)
	at("a", 27_999, false)
	back("a", 27_999, true)
	back("a", 27_999, false)
	at("a", 27_999, true)    // it is new again
	back("b", 28_000, false) // too late
	at("b", 28_000, true)
	at("a", 28_000, false)
	at("a", 48_999, false)
	at("a", 22_999, false) // a clock behind looks in the next set too
	at("a", 49_000, true)
	for g := range int64(100) { // it forgets, or the item would grow
		at(fmt.Sprint("c", g), 80_000+14_000*g, true)
	}
	remembered := 0
	for _, set := range item.IDs {
		remembered += len(set.Elements)
	}
	if remembered > 3 {
		t.Errorf("the item remembers %d requests, want at most the 3 of the last 28 s", remembered)
	}
}

func remembersHeld(t *testing.T, s ratelimit.Store) {
	const minute = 60_000
	at := func(id string, hold bool, after int64, want bool) ratelimit.Item {
		t.Helper()
		w := forever(write("u", id, 1000), after)
		w.Hold = hold
		return update(t, s, w, want)
	}
	at("a", true, 0, true)
	at("a", false, 0, true) // another activity's, which holds none
	for i := range int64(50) {
		at(fmt.Sprint("other", i), false, i*minute/4, true) // they forget only ids like their own
	}
	at("b", true, 14*minute, true)
	at("a", true, 15*minute, false)
	at("a", true, 20*minute-1, false)
	at("b", true, 29*minute, false)
	at("a", true, 20*minute, true)
	for g := range int64(60) { // it forgets, or the item would grow
		at(fmt.Sprint("c", g), true, (40+6*g)*minute, true)
	}
	remembered := 0
	for _, set := range at("last", true, 500*minute, true).IDs {
		if set.Name[0] == 'h' {
			remembered += len(set.Elements)
		}
	}
	if remembered > 4 {
		t.Errorf("the item remembers %d requests, want at most the 4 of the last 20 minutes", remembered)
	}
}

// A renewal drops an id from its set and keeps the same id in the current set, with a
// note.
func renews(t *testing.T, s ratelimit.Store) {
	for _, hold := range []bool{false, true} {
		w := forever(write(fmt.Sprint("u", hold), "a", 9), 0)
		w.Hold = hold
		item := update(t, s, w, true)
		for i := range int64(40) { // through all names
			w.Now += []int64{0, 6_500, 20_000}[i%3]
			kept, ok := item.Find(w)
			if !ok {
				t.Fatalf("renewal %d: the item %v does not know the id", i, item)
			}
			w.Drop, w.Note = kept, w.Now
			w.Update = policy.Update{Acts: []policy.Act{{Verb: policy.Set, Attr: "n", Value: i}}}
			item = update(t, s, w, true)
			w.Drop = ratelimit.Location{}
			if kept, ok = item.Find(w); !ok || kept.Note != w.Note || len(item.IDs) != 1 {
				t.Fatalf("renewal %d: the item keeps %v and finds %+v, %v, want one set with the note %d", i, item.IDs, kept, ok, w.Note)
			}
			update(t, s, w, false) // a check with this id is a repeat
		}
	}
}

func remembersWhole(t *testing.T, s ratelimit.Store) {
	w := write("u", "a", 50)
	update(t, s, w, true)
	w.Now += 3_600_000
	update(t, s, w, false)
	generations := w // a tier with a higher limit looks there too
	generations.KeepAll = false
	update(t, s, generations, false)
	other := write("u", "b", 50)
	other.KeepAll = false
	update(t, s, other, true)
	other.KeepAll = true
	update(t, s, other, false)
}

func forgetsOldNames(t *testing.T, s ratelimit.Store) {
	const round = 259_000
	for i, after := range []int64{0, round - 7_000, 2*round - 7_000, 3 * round, 4*round + 7_000} {
		item := update(t, s, forever(write("u", "a", 50), after), true)
		if got := item.State.Get("n"); got != int64(i+1) {
			t.Errorf("after %d ms %d are counted, want %d", after, got, i+1)
		}
	}
}

// A mark needs its id, and can be made twice. It refuses give-backs and no other release.
func marks(t *testing.T, s ratelimit.Store) {
	for _, w := range []ratelimit.Write{write("u", "a", 5), forever(write("u", "a", 5), 0)} {
		mark := ratelimit.Write{Key: w.Key, RelyOn: giveBack(w, ratelimit.Item{}).Drop, Now: w.Now}
		same(t, "the item after a mark of nothing", update(t, s, mark, false), ratelimit.Item{})
		item := update(t, s, w, true)
		for range 2 {
			mark.RelyOn, _ = item.Find(w)
			item = update(t, s, mark, true)
		}
		if kept, ok := item.Find(w); !ok || !kept.ReliedOn || item.State.Get("n") != 1 {
			t.Errorf("after a mark the item is %v and keeps %+v, %v", item, kept, ok)
		}
		back := giveBack(w, item)
		back.GivesBack = true
		update(t, s, back, false)
		back.GivesBack = false
		if item = update(t, s, back, true); item.State.Get("n") != 0 {
			t.Errorf("after a release the item is %v, want nothing counted", item)
		}
	}
}

// RunExpires tests Write.Expires. Open returns an empty store, and a function
// that looks up when an item expires, in Unix seconds.
func RunExpires(t *testing.T, open func(testing.TB) (ratelimit.Store, func(ratelimit.Key) int64)) {
	s, expires := open(t)
	back := ratelimit.Write{Key: key("u"), Now: now, Update: policy.Update{Acts: []policy.Act{{Verb: policy.Add, Attr: "n", Value: -1}}}}
	for _, step := range []struct {
		name    string
		w       ratelimit.Write
		expires int64 // in the write
		done    bool
		want    int64 // in the item
	}{
		{"the first write sets it", write("u", "a", 2), 1000, true, 1000},
		{"each write sets it", write("u", "b", 2), 1060, true, 1060},
		{"a refused write leaves it unchanged", write("u", "c", 2), 1120, false, 1060},
		{"a write without one leaves it unchanged", back, 0, true, 1060},
	} {
		step.w.Expires = step.expires
		update(t, s, step.w, step.done)
		if got := expires(key("u")); got != step.want {
			t.Errorf("%s: the item expires at %d, want %d", step.name, got, step.want)
		}
	}
}

// Two renewals bring an id back to its set with another note, the second on a clock
// behind, or one that drops the id of a check. A renewal that was planned before them is
// refused.
func renewsElsewhere(t *testing.T, s ratelimit.Store) {
	for user, renewed := range map[string]bool{"checked": false, "renewed": true} {
		w := forever(write(user, "a", 9), 7_000-now%7_000) // a generation begins
		w.Renewed = true
		item := update(t, s, w, true)
		renew := func(after int64) (planned ratelimit.Location) {
			planned, _ = item.Find(w)
			w.Now += after
			w.Note, w.Drop = w.Now, planned
			item = update(t, s, w, true)
			w.Drop = ratelimit.Location{}
			return planned
		}
		if renewed {
			renew(0)
			w.Now += 7_000 // the set that has it is now the current generation's
		}
		planned := renew(100)
		renew(-50)
		if kept, _ := item.Find(w); kept.Set != planned.Set || kept.Note == planned.Note {
			t.Fatalf("%s: the id is %+v and was %+v, want another note in the same set", user, kept, planned)
		}
		w.Drop = planned
		update(t, s, w, false)
	}
}
