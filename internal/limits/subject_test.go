package limits_test

import (
	"fmt"
	"testing"

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

// Each sentence says what to change.
func TestWhatASubjectCannotBe(t *testing.T) {
	minute, room := policy.Must("10/1m"), func(limit string) Subject { return Subject{Name: "room", Limit: policy.Must(limit)} }
	for want, a := range map[string]Activity{
		"<nil>": {Limit: minute, Subjects: []Subject{
			room("log 9/1h"), {Name: "tenant", Limit: minute, Tiers: Tiers{"pro": policy.Must("20/1m")}, Optional: true}, {Name: "country", Limit: policy.Must("day: 9/day, pace: bucket 5/1m")},
		}},
		"it is unlimited and has a limit, a group, subjects or Hold": {Unlimited: true, Subjects: []Subject{room("9/1m")}},
		"it has 4 subjects, want at most 3": {Limit: minute, Subjects: []Subject{
			{Name: "a", Limit: minute}, {Name: "b", Limit: minute}, {Name: "c", Limit: minute}, {Name: "d", Limit: minute},
		}},
		`name of a subject is "", want 1 to 8 letters a to z, such as room`:          {Limit: minute, Subjects: []Subject{{Limit: minute}}},
		`name of a subject is "buildings", want 1 to 8 letters a to z, such as room`: {Limit: minute, Subjects: []Subject{{Name: "buildings", Limit: minute}}},
		`name of a subject is "room_1", want 1 to 8 letters a to z, such as room`:    {Limit: minute, Subjects: []Subject{{Name: "room_1", Limit: minute}}},

		`subject "write": the activity, a limit or another subject has that name`:                              {Limit: minute, Subjects: []Subject{{Name: "write", Limit: minute}}},
		`subject "day": the activity, a limit or another subject has that name`:                                {Limit: policy.Must("day: 9/1d, hour: 5/1h"), Subjects: []Subject{{Name: "day", Limit: minute}}},
		`subject "room": the activity, a limit or another subject has that name`:                               {Limit: minute, Subjects: []Subject{room("5/1m"), room("5/1m")}},
		`subject "room" has no limit`:                                                                          {Limit: minute, Subjects: []Subject{{Name: "room"}}},
		`subject "room": a reservoir gives places to users alone; want another kind of limit beside a subject`: {Limit: minute, Subjects: []Subject{room("reservoir 9/1m")}},
		`subject "hall": a reservoir gives places to users alone; want another kind of limit beside a subject`: {Limit: policy.Must("reservoir 9/1m"), Subjects: []Subject{{Name: "hall", Limit: minute}}},

		`subject "room": limit "w: 9/1m" has a name, want one only if there are several limits or a group`: {Limit: minute, Subjects: []Subject{room("w: 9/1m")}},
		`subject "room": limit "9/1m" has no name, want one in the group "content", as in "writes: 9/1m"`:  {Limit: policy.Must("w: 10/1m"), Group: "content", Subjects: []Subject{room("9/1m")}},
		`subject "room": tier "pro": window of "9/1h" is 1h, want 1m as in "10/1m", with which it shares a count`: {
			Limit: minute, Subjects: []Subject{{Name: "room", Limit: minute, Tiers: Tiers{"pro": policy.Must("9/1h")}}},
		},
		`subject "room": "900/1m" is too fast for Hold: limit is 900 in 1m, want at most 500, because the item keeps an id for each request of the last 20m; ` +
			"divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units": {Limit: minute, Hold: true, Subjects: []Subject{room("900/1m")}},
	} {
		if want != "<nil>" {
			want = `g, activity "write": ` + want
		}
		a.Name = "write"
		if got := fmt.Sprint(Guard{Name: "g", Message: "m", Activities: []Activity{a}}.Validate()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Subjects are compared with other activities, too.
func TestSubjectsOfSeveralActivities(t *testing.T) {
	write := func(name, group, limit, subject, its string) Guard {
		return Guard{Name: name + "-guard", Message: "m", Activities: []Activity{
			{Name: name, Group: group, Limit: policy.Must(limit), Subjects: []Subject{{Name: subject, Limit: policy.Must(its)}}},
		}}
	}
	for want, all := range map[string]Guards{
		"<nil>": {write("post", "content", "w: 9/1m", "room", "all: 9/1m"), write("comment", "content", "w: 9/1m", "tenant", "all: 9/1d")},
		`activities "post" and "comment" of the group "content": window of limit "all" of "all: 9/1d" is 1d, want 1m as in "all: 9/1m", with which it shares a count`: {
			write("post", "content", "w: 9/1m", "room", "all: 9/1m"), write("comment", "content", "w: 9/1m", "room", "all: 9/1d"),
		},
		`post-guard, activity "post": its subject "room" has the name of an activity of room-guard; give the subject a name of its own`: {
			write("post", "", "9/1m", "room", "9/1m"), write("room", "", "9/1m", "tenant", "9/1m"),
		},
	} {
		if got := fmt.Sprint(all.Validate()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// In a group, the limits of each subject lie beside one another, and not beside those of
// users. Link leaves the guards that it gets as they are.
func TestLinkOfSubjects(t *testing.T) {
	const now = 1_700_000_000_000
	of := func(name, limit, rooms, pro string) Activity {
		return Activity{Name: name, Group: "content", Limit: policy.Must(limit), Subjects: []Subject{
			{Name: "room", Limit: policy.Must(rooms), Tiers: Tiers{"pro": policy.Must(pro)}},
		}}
	}
	all := Guards{{Name: "g", Message: "m", Activities: []Activity{of("post", "w: 9/1d", "a: 9/1m", "a: 99/1m"), of("comment", "w: 5/1d", "b: 9/1h", "b: 99/1h")}}}
	linked, err := all.Link()
	if err != nil {
		t.Fatal(err)
	}
	_, want := policy.Must("9/1h").Item(now)
	for _, tier := range []string{"", "pro"} {
		_, a, _ := linked.Activity("post")
		if _, got := a.Part("room").For(tier).Item(now); got != want {
			t.Errorf("the item of a room for tier %q is kept until %d, want %d, as long as an hour counts", tier, got, want)
		}
		if _, before := all[0].Activities[0].Part("room").For(tier).Item(now); before >= want {
			t.Errorf("Link changes tier %q of the guards that it gets", tier)
		}
	}
}
