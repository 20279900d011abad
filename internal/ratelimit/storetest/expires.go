package storetest

import (
	"testing"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// RunExpires holds a store to what a Write says of Expires. Open makes an empty
// store, and a look at when an item of it expires, in Unix seconds.
func RunExpires(t *testing.T, open func(testing.TB) (ratelimit.Store, func(ratelimit.Key) int64)) {
	s, expires := open(t)
	for _, step := range []struct {
		name    string
		w       ratelimit.Write
		expires int64 // in the write
		done    bool
		want    int64 // in the item
	}{
		{"the first write sets it", write("u", "a", 2), 1000, true, 1000},
		{"each write sets it", write("u", "b", 2), 1060, true, 1060},
		{"a refused write leaves it as it is", write("u", "c", 2), 1120, false, 1060},
		{"a release leaves it as it is", giveBack("u", "a"), 1180, true, 1060},
		{"a release without one, too", giveBack("u", "b"), 0, true, 1060},
	} {
		step.w.Expires = step.expires
		update(t, s, step.w, step.done)
		if got := expires(key("u")); got != step.want {
			t.Errorf("%s: the item expires at %d, want %d", step.name, got, step.want)
		}
	}
}
