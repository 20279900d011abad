package limits_test

import (
	"testing"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

func TestSubjectOf(t *testing.T) {
	if name, id, ok := SubjectOf(SubjectID("room", "r42")); !ok || name != "room" || id != "r42" {
		t.Errorf("room r42: %q, %q, %v", name, id, ok)
	}
	for _, key := range []string{"u1", " config", " ", "", "room"} {
		if name, id, ok := SubjectOf(key); ok {
			t.Errorf("%q is the key of %s %s, want no subject", key, name, id)
		}
	}
}

// In a group, the limits of each subject lie beside one another, and not beside users'
// limits.
func TestLinkOfSubjects(t *testing.T) {
	const now = 1_700_000_000_000
	of := func(name string, limit, rooms, pro guards.Limit) guards.Activity {
		return guards.Activity{Name: name, Group: "content", Limit: limit, Subjects: []guards.Subject{{Name: "room", Limit: rooms, Tiers: guards.Tiers{"pro": pro}}}}
	}
	linked, err := Link([]guards.Guard{{Name: "g", Message: "m", Activities: []guards.Activity{
		of("post", "w: 9/1d", "a: 9/1m", "a: 99/1m"), of("comment", "w: 5/1d", "b: 9/1h", "b: 99/1h"),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	_, want := policy.Must("9/1h").Item(now)
	for _, tier := range []string{"", "pro"} {
		_, a, _ := linked.Activity("post")
		if _, got := a.Part("room").For(tier).Item(now); got != want {
			t.Errorf("the item of a room for tier %q is kept until %d, want %d, as long as an hour counts", tier, got, want)
		}
	}
}
