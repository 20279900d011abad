package storetest

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/ratelimit"
)

func asTheModel(t *testing.T, s ratelimit.Store) {
	term := rapid.Custom(func(t *rapid.T) ratelimit.Term {
		return ratelimit.Term{
			Attr:  rapid.SampledFrom([]string{"x", "y"}).Draw(t, "attr"),
			Op:    rapid.SampledFrom([]ratelimit.Op{ratelimit.AtMost, ratelimit.Above}).Draw(t, "op"),
			Value: rapid.Int64Range(-3, 3).Draw(t, "bound"),
		}
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
		w.Update.If = rapid.SliceOfN(rapid.SliceOfN(term, 1, 3), 0, 3).Draw(t, "if")
		w.Update.Acts = rapid.SliceOfNDistinct(act, 1, 3, func(a ratelimit.Act) string { return a.Attr }).Draw(t, "acts")
		return w
	})
	tried := 0
	rapid.Check(t, func(r *rapid.T) {
		tried++ // an item of its own for each case, also while one is being shrunk
		var model ratelimit.Item
		for _, w := range rapid.SliceOfN(step, 1, 12).Draw(r, "steps") {
			w.Key = key(fmt.Sprint("u", tried))
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
