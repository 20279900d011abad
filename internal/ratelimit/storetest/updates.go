package storetest

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

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
	if performed.Load() != limit || item.State.Get("n") != limit || len(item.IDs.In("ids")) != limit {
		t.Errorf("%d of %d concurrent updates were performed, and the item is %v; want %d", performed.Load(), callers, item, limit)
	}
}

func wholeOrNotAtAll(t *testing.T, s ratelimit.Store) {
	one := update(t, s, write("u", "a", 2), true)
	same(t, "the item after a write", one, ratelimit.Item{State: policy.State{{Name: "n", Value: 1}}, IDs: ids("a")})
	same(t, "the item that a counted id brings back", update(t, s, write("u", "a", 2), false), one)
	two := update(t, s, write("u", "b", 2), true)
	same(t, "the item that a guard brings back", update(t, s, write("u", "c", 2), false), two)
	same(t, "the item after refusals", read(t, s, key("u")), two)

	set := write("u", "d", 3)
	set.Update.Acts = []policy.Act{
		{Verb: policy.Set, Attr: "x", Value: -5},
		{Verb: policy.Add, Attr: "y", Value: 9},
		{Verb: policy.Delete, Attr: "n"},
	}
	want := ratelimit.Item{State: policy.State{{Name: "x", Value: -5}, {Name: "y", Value: 9}}, IDs: ids("a", "b", "d")}
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
		term        func(attr string) policy.Term
		absent, one bool // does the term hold if the attribute is missing, and if it is 1
	}{
		{func(attr string) policy.Term { return policy.AtMost(attr, -1) }, false, false},
		{func(attr string) policy.Term { return policy.AtMost(attr, 0) }, true, false},
		{func(attr string) policy.Term { return policy.AtMost(attr, 1) }, true, true},
		{func(attr string) policy.Term { return policy.Within(attr, 1, 1) }, false, true},
		{func(attr string) policy.Term { return policy.Within(attr, 0, 2) }, false, true},
		{func(attr string) policy.Term { return policy.Within(attr, -1, 0) }, false, false},
		{func(attr string) policy.Term { return policy.Within(attr, 2, 3) }, false, false},
		{func(attr string) policy.Term { return policy.Within(attr, least, 0) }, false, false},
		{func(attr string) policy.Term { return policy.Within(attr, least, 1) }, false, true},
		{func(attr string) policy.Term { return policy.Within(attr, 1, most) }, false, true},
		{func(attr string) policy.Term { return policy.Within(attr, 2, most) }, false, false},
		{func(attr string) policy.Term { return policy.Exactly(attr, 1) }, false, true},
		{func(attr string) policy.Term { return policy.Exactly(attr, 2) }, false, false},
		{func(attr string) policy.Term { return policy.Term{Attr: attr, From: least, To: -1, OrMissing: true} }, true, false},
		{policy.Missing, true, false},
	} {
		for _, attr := range []string{"absent", "n"} {
			if err := s.Delete(t.Context(), key("u")); err != nil {
				t.Fatal(err)
			}
			update(t, s, write("u", "first", 1), true)
			w := write("u", "second", 9)
			w.Update.If = [][]policy.Term{{tt.term(attr)}}
			update(t, s, w, attr == "n" && tt.one || attr == "absent" && tt.absent)
		}
	}
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
	for range 2 { // the second time, the item is gone already
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
		want = append(want, ratelimit.Item{State: policy.State{{Name: "n", Value: int64(i + 1)}}, IDs: ids(counted...)})
	}
	for _, item := range got {
		x, _ := item.Write(write("u", "x", 99))
		y, _ := item.Write(write("u", "y", 99))
		_, xInX := x.Find(write("u", "x", 99))
		_, yInY := y.Find(write("u", "y", 99))
		if !xInX || !yInY {
			t.Errorf("two writes of %v share memory: %v and %v", item, x, y)
		}
	}
	a := write("u", "a", 9)
	update(t, s, giveBack(a, got[0]), true)
	for i := range got {
		same(t, "an item returned before other writes", got[i], want[i])
	}
}
