package policy_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
)

// Under a lowered limit, more actions count than are allowed. A request for no
// action does not wait for them.
func TestNobodyWaitsForNoAction(t *testing.T) {
	for counted, lowered := range map[string]string{
		"3/1m": "2/1m", "a: 3/1m, b: 9/1d": "a: 2/1m, b: 9/1d", "bucket 1/5s burst 3": "bucket 1/5s", "log 3/1h": "log 2/1h",
		"sliding 3/1h": "sliding 2/1h", "reservoir 2/10s": "reservoir 1/10s", "a: sliding 3/1h, b: 9/1d": "a: sliding 2/1h, b: 9/1d",
	} {
		s := full(Must(counted), start, nil)
		if r := Must(lowered).Read(start, 0, s); r.Wait != 0 || r.Remaining != 0 {
			t.Errorf("%s reads %v for no action as %+v, want no wait and nothing left", lowered, s, r)
		}
	}
}

// A clock that is ahead has begun the next minute. A clock that is behind counts there, too,
// and gives back there only what it has counted there.
func TestAWindowBesideOthersOnAClockBehind(t *testing.T) {
	const text, next = "a: 3/1m, b: 9/1d", start + 60_000
	items := timeline(t, text, []moment{
		{at: time.Minute, take: 1, want: "ok 1/3 by a"},
		{at: 59 * time.Second, take: 1, want: "ok 2/3 by a"},
		{at: time.Minute, take: 1, want: "ok 3/3 by a"},
		{at: 59 * time.Second, take: 1, want: "no 3/3 wait 1m1s by a"},
	})
	u, ok := Must(text).Undo(next-1000, next-1000, next, 1, items[0])
	if left := u.Apply(items[0]); !ok || Must(text).Read(next-1000, 0, left).Each[0].Used != 2 {
		t.Errorf("what counts in the next minute is not given back there: %+v", u)
	}
	planned, ok := Must(text).Undo(next-1000, next-1000, next-1000, 1, policytest.Values{"a_s": (next-60_000)*1_000_000 + 1}.State())
	if !ok {
		t.Fatal("an action of the minute before cannot be given back there")
	}
	for _, count := range []int64{0, 1, 2} {
		s := policytest.Values{"a_s": next*1_000_000 + count}.State()
		if planned.Holds(s) {
			t.Errorf("a release of the minute before holds in %v", s)
		}
		if u, ok := Must(text).Undo(next-1000, next-1000, next-1000, 1, s); ok {
			t.Errorf("a release of the minute before is planned in %v: %+v", s, u)
		}
	}
}

func TestALogHasTheSlotsA0ToJ9(t *testing.T) {
	u, ok := Must("log 100/12h").Take(start, 100, 1, nil)
	if !ok {
		t.Fatal("100 actions do not fit")
	}
	var got []string
	for _, a := range u.Acts {
		if a.Verb == Set && a.Attr != "top" {
			got = append(got, a.Attr)
		}
	}
	slices.Sort(got)
	if len(got) != 100 || got[0] != "a0" || got[10] != "b0" || got[99] != "j9" || len(slices.Compact(got)) != 100 {
		t.Errorf("the slots are %v, want a0 to j9", got)
	}
}

// Up to 50 slots, a guard accepts an absent slot and an old one. With more, it
// tests for each slot what is so in the known state, which is half as long.
func TestALongGuardOfALogIsTight(t *testing.T) {
	s := full(Must("log 100/12h"), start-12*3_600_000, nil) // all slots are old
	s = Update{Acts: []Act{{Verb: Delete, Attr: "c0"}}}.Apply(s)
	for _, tt := range []struct {
		text  string
		n     int64
		loose bool
	}{
		{"log 100/12h", 50, true}, {"log 100/12h", 51, false}, {"log 100/12h", 100, false},
		{"log 51/12h", 1, true}, {"log 50/12h", 1, false}, // and 49 or 50 more that are free
	} {
		u, ok := Must(tt.text).Take(start, tt.n, 1, s)
		if !ok || !u.Holds(s) {
			t.Fatalf("%s: %d do not fit", tt.text, tt.n)
		}
		for _, term := range u.If[0] {
			if term.Attr != "top" && term.OrMissing != (tt.loose || term.Attr == "c0") {
				t.Errorf("%s takes %d: the guard has %+v", tt.text, tt.n, term)
			}
		}
	}
}

func TestNothingIsGivenBackWhereNothingIsCounted(t *testing.T) {
	if u, ok := Must("a: 3/1m, b: 9/1h").Undo(start, start, start, 1, nil); ok {
		t.Errorf("the undo in an empty item is %+v, want none", u)
	}
}

func TestAMillionActionsCanBeGivenBackAtOnce(t *testing.T) {
	s := policytest.Values{"activityCount": 1_000_000}.State()
	if u, ok := Must("9/1m").Undo(start, start, start, 1_000_000, s); !ok || u.Apply(s).Get("activityCount") != 0 {
		t.Errorf("the undo of a million is %+v, %v", u, ok)
	}
	if u, ok := Must("9/1m").Undo(start, start, start, 1_000_001, policytest.Values{"activityCount": 1_000_001}.State()); ok {
		t.Errorf("the undo of more than a million is %+v, want none", u)
	}
}

// The product of a time and an interval has just more than 64 bits.
func TestABucketThatIsFullInTheFarFuture(t *testing.T) {
	s := policytest.Values{"tat": 1 << 62, "every": 1}.State()
	if r := Must("bucket 1/4ms").Read(start, 1, s); r.Wait <= 0 || r.ResetAt <= start {
		t.Errorf("it reads %+v, want a wait", r)
	}
}

// A clock that is up to 120 s ahead decides when an action counts. A time
// further ahead is a mistake, and is not followed.
func TestHowFarAheadAClockIsFollowed(t *testing.T) {
	p := Must("pace: bucket 1/5s burst 3, all: 9/1h")
	for ahead, want := range map[int64]int64{0: 0, 2000: 2000, 120_000: 120_000, 120_001: 0} {
		u, ok := p.Take(start+ahead, 1, 1, nil)
		if at := p.CountedAt(start, u.Apply(nil)); !ok || at != start+want {
			t.Errorf("on a clock %d ms behind, an action counts %d ms later, want %d", ahead, at-start, want)
		}
	}
}

// A window beside other limits is empty again after a release.
func TestAWindowBesideOthersIsTakenAgain(t *testing.T) {
	timeline(t, "a: 3/1m, b: 9/1d", []moment{
		{at: 0, take: 2, want: "ok 2/3 by a"},
		{at: 0, undo: 3, of: 0, want: "no 2/3 by a"}, // more than there is
		{at: 0, undo: 2, of: 0, want: "ok 0/3 by a"},
		{at: 0, take: 3, want: "ok 3/3 by a"},
	})
	const empty = start / 60_000 * 60_000 * 1_000_000
	u, ok := Must("a: 3/1m, b: 9/1d").Take(start, 1, 1, policytest.Values{"a_s": empty}.State())
	if !ok || u.Holds(policytest.Values{"a_s": empty + 3}.State()) {
		t.Errorf("the plan for an empty window is %+v, %v, want one that a full window refuses", u, ok)
	}
}

// A state holds what a map would hold after the same updates, in the order of the names, and
// no update changes the state that it was applied to.
func TestAStateIsLikeAMap(t *testing.T) {
	names := []string{"", "a", "a0", "asof", "b", "b0", "c", "d", "e", "f", "g", "h", "i", "j", "k", "tat"}
	rapid.Check(t, func(t *rapid.T) {
		var s State
		m := policytest.Values{}
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
