package storetest

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/ratelimit"
)

func asTheModel(t *testing.T, s ratelimit.Store) {
	term := rapid.Custom(func(t *rapid.T) ratelimit.Term {
		attr := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "attr")
		from := rapid.Int64Range(-3, 3).Draw(t, "from")
		switch rapid.SampledFrom([]string{"at most", "within", "missing"}).Draw(t, "term") {
		case "at most":
			return ratelimit.AtMost(attr, from)
		case "within":
			return ratelimit.Within(attr, from, from+rapid.Int64Range(0, 2).Draw(t, "wide"))
		}
		return ratelimit.Missing(attr)
	})
	act := rapid.Custom(func(t *rapid.T) ratelimit.Act {
		return ratelimit.Act{
			Verb:  rapid.SampledFrom([]ratelimit.Verb{ratelimit.Add, ratelimit.Set, ratelimit.Delete}).Draw(t, "verb"),
			Attr:  rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "attr"),
			Value: rapid.Int64Range(-3, 3).Draw(t, "value"),
		}
	})
	step := rapid.Custom(func(t *rapid.T) ratelimit.Write {
		w := write("", rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id"), 0)
		w.Release = rapid.Bool().Draw(t, "release")
		w.Now += rapid.Int64Range(0, 45_000).Draw(t, "after")
		w.Update.If = rapid.SliceOfN(rapid.SliceOfN(term, 1, 3), 0, 3).Draw(t, "if")
		w.Update.Acts = rapid.SliceOfNDistinct(act, 1, 3, func(a ratelimit.Act) string { return a.Attr }).Draw(t, "acts")
		return w
	})
	tried := 0
	rapid.Check(t, func(r *rapid.T) {
		tried++ // an item of its own for each case, also while one is being shrunk
		var model ratelimit.Item
		window := rapid.SampledFrom([]int64{0, 7}).Draw(r, "window")
		for _, w := range rapid.SliceOfN(step, 1, 12).Draw(r, "steps") {
			w.Key = key(fmt.Sprint("u", tried))
			w.Key.Window = window
			want, ok := model.Write(w)
			item, done, err := s.Update(t.Context(), w)
			if err != nil || done != ok {
				r.Fatalf("Update(%+v) on %v = %v, %v, want %v", w, model, done, err, ok)
			}
			same(r, "the item after it", item, want)
			model = want
		}
	})
}
