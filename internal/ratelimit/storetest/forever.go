package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// forever makes w a write of an item that serves for ever, at some milliseconds
// after now, which begins a generation of ids.
func forever(w ratelimit.Write, after int64) ratelimit.Write {
	w.Key.Window, w.Now = 0, now+after
	return w
}

func remembers(t *testing.T, s ratelimit.Store) {
	at := func(id string, after int64, want bool) {
		t.Helper()
		update(t, s, forever(write("u", id, 1000), after), want)
	}
	back := func(id string, after int64, want bool) {
		t.Helper()
		update(t, s, forever(giveBack("u", id), after), want)
	}
	at("a", 0, true)
	at("a", 9_999, false)
	at("b", 9_999, true)
	at("b", 10_000, false)
	at("a", 19_999, false)
	back("a", 19_999, true)
	back("a", 19_999, false)
	at("a", 19_999, true)    // new again
	back("b", 20_000, false) // too late
	at("b", 20_000, true)
	at("a", 20_000, false)
	at("a", 29_999, false)
	at("a", 10_500, false) // sent before, and overtaken by the one that was counted
	at("a", 30_000, true)
	for g := range int64(100) { // it forgets, or the item would grow
		at(fmt.Sprint("c", g), 40_000+15_000*g, true)
	}
	remembered := 0
	for _, ids := range read(t, s, forever(write("u", "", 0), 0).Key).IDs {
		remembered += len(ids)
	}
	if remembered > 3 {
		t.Errorf("the item remembers %d requests, want those of the last 20 s, at most 3", remembered)
	}
}

func keepsOrder(t *testing.T, s ratelimit.Store) {
	w := func(id string, after int64) ratelimit.Write {
		w := forever(write("u", id, 100), after)
		w.Ordered = true
		return w
	}
	var item ratelimit.Item
	for i := range int64(30) {
		item = update(t, s, w(fmt.Sprint(i), 500*i), true)
	}
	update(t, s, w("7", 15_000), false)
	later := make([]int, 30)
	for i := range later {
		n, ok := item.Later(w(fmt.Sprint(i), 15_000))
		if !ok {
			t.Errorf("request %d is not in the item", i)
		}
		later[29-i] = n
	}
	want := make([]int, 30)
	for i := range want {
		want[i] = i
	}
	if diff := cmp.Diff(want, later); diff != "" {
		t.Errorf("requests counted after the last, the one before, ... (-want +got):\n%s", diff)
	}
}
