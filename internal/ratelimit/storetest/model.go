package storetest

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// likeTheModel sends random writes to the store and to [ratelimit.Item.Write],
// and compares the items.
func likeTheModel(t *testing.T, s ratelimit.Store) {
	step := rapid.Custom(drawWrite)
	tried := 0
	rapid.Check(t, func(r *rapid.T) {
		tried++ // an item of its own for each case, also while one is being shrunk
		var model ratelimit.Item
		window := rapid.SampledFrom([]int64{0, 7}).Draw(r, "window")
		for _, w := range rapid.SliceOfN(step, 1, 12).Draw(r, "steps") {
			w.Key = key(fmt.Sprint("u", tried))
			w.Key.Window = window
			w.KeepAll = w.KeepAll && window != 0 && w.Drop.Set == ""
			if w.RelyOn.Set != "" { // what the step drew is only the wish to mark
				w.RelyOn, w.Drop, w.ID = giveBack(w, model).Drop, ratelimit.Location{}, ratelimit.ID{}
			}
			if w.Drop.Set != "" { // and the wish to drop
				w.Drop = ratelimit.Location{}
				w.Drop = giveBack(w, model).Drop
				switch rapid.IntRange(0, 2).Draw(r, "keeps") {
				case 0:
					w.ID = ratelimit.ID{}
				case 1:
					w.ID = ratelimit.NewID("release")
				} // 2: the id that it drops, as a renewal does
			}
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

func drawWrite(t *rapid.T) ratelimit.Write {
	w := write("", rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id"), 0)
	w.KeepAll = rapid.Bool().Draw(t, "whole")
	w.Hold = rapid.Bool().Draw(t, "hold")
	w.Renewed = rapid.Bool().Draw(t, "renewed")
	w.KeepOld = rapid.Bool().Draw(t, "keepOld")
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0, 1:
		w.Drop.Set = "ids"
		w.GivesBack = rapid.Bool().Draw(t, "gives back")
	case 2:
		w.RelyOn.Set = "ids"
	case 3:
		w.OtherID = ratelimit.NewID(rapid.SampledFrom([]string{"a", "b", "release"}).Draw(t, "other"))
	}
	if w.Note = rapid.SampledFrom([]int64{0, 0, 1, now}).Draw(t, "note"); w.Note == now {
		w.First = rapid.SampledFrom([]int64{0, now - 2, now - 1}).Draw(t, "first")
		w.Last = rapid.SampledFrom([]int64{w.First, now - 1}).Draw(t, "last")
	}
	w.Now += rapid.Int64Range(0, 90_000).Draw(t, "after")
	w.Update.If = rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(drawTerm), 1, 3), 0, 3).Draw(t, "if")
	w.Update.Also = rapid.SliceOfN(rapid.Custom(drawTerm), 0, 3).Draw(t, "also")
	w.Update.Acts = rapid.SliceOfNDistinct(rapid.Custom(drawAct), 1, 3, func(a policy.Act) string { return a.Attr }).Draw(t, "acts")
	return w
}

func drawTerm(t *rapid.T) policy.Term {
	attr := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "attr")
	from := rapid.Int64Range(-3, 3).Draw(t, "from")
	switch rapid.SampledFrom([]string{"at most", "within", "missing"}).Draw(t, "term") {
	case "at most":
		return policy.AtMost(attr, from)
	case "within":
		return policy.Within(attr, from, from+rapid.Int64Range(0, 2).Draw(t, "wide"))
	}
	return policy.Missing(attr)
}

func drawAct(t *rapid.T) policy.Act {
	return policy.Act{
		Verb:  rapid.SampledFrom([]policy.Verb{policy.Add, policy.Set, policy.Delete}).Draw(t, "verb"),
		Attr:  rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "attr"),
		Value: rapid.Int64Range(-3, 3).Draw(t, "value"),
	}
}
