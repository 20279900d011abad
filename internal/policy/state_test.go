package policy_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/policy"
)

// A state holds what a map would hold after the same updates, in the order of the names, and
// no update changes the state that it was applied to.
func TestAStateIsLikeAMap(t *testing.T) {
	names := []string{"", "a", "a0", "asof", "b", "b0", "c", "d", "e", "f", "g", "h", "i", "j", "k", "tat"}
	rapid.Check(t, func(t *rapid.T) {
		var s State
		m := Values{}
		for range rapid.IntRange(0, 40).Draw(t, "updates") {
			a := Act{
				Verb: rapid.SampledFrom([]Verb{Add, Set, Set, Delete}).Draw(t, "verb"),
				Attr: rapid.SampledFrom(names).Draw(t, "attr"), Value: rapid.Int64Range(-3, 3).Draw(t, "value"),
			}
			before := slices.Clone(s)
			after := Update{Acts: []Act{a}}.Apply(s)
			if !slices.Equal(s, before) {
				t.Fatalf("%+v changes %v to %v", a, before, s)
			}
			switch s = after; a.Verb {
			case Add:
				m[a.Attr] += a.Value
			case Set:
				m[a.Attr] = a.Value
			case Delete:
				delete(m, a.Attr)
			}
		}
		if diff := cmp.Diff(m.State(), s, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the state is %v (-want +got):\n%s", s, diff)
		}
		for _, name := range names {
			want, has := m[name]
			if got, ok := s.Find(name); got != want || ok != has || s.Get(name) != want {
				t.Fatalf("%q of %v is %d, %v, want %d, %v", name, slices.Sorted(maps.Keys(m)), got, ok, want, has)
			}
		}
	})
}

func TestAttributeName(t *testing.T) {
	for _, name := range []string{"", "a0", "j9", "k0", "a:", "A0", "tat", "top", "minute_s", "c28333333"} {
		if got := AttributeName([]byte(name)); got != name {
			t.Errorf("AttributeName(%q) = %q", name, got)
		}
	}
}
