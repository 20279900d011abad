package limits_test

import (
	"strings"
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

// What an activity with subjects can't be is found at start, by a sentence that names the
// subject.
func TestWhatSubjectsCannotBe(t *testing.T) {
	room := func(name, limit string) Subject { return Subject{Name: name, Limit: policy.Must(limit)} }
	tier := func(s Subject, limit string) Subject {
		s.Tiers = Tiers{"pro": policy.Must(limit)}
		return s
	}
	for name, tt := range map[string]struct {
		a    Activity
		want string // empty: all is well
	}{
		"three of every kind": {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{
			room("room", "bucket 600/1m"), room("tenant", "sliding 9/1h cost 2"), tier(room("country", "minute: log 9/1m, month: 9/month"), "minute: log 99/1m, month: 99/month"),
		}}, ""},
		"in a group": {Activity{Group: "content", Limit: policy.Must("writes: 10/1m"), Subjects: []Subject{room("room", "writes: 60/1m")}}, ""},
		"four": {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{room("a", "9/1m"), room("b", "9/1m"), room("c", "9/1m"), room("d", "9/1m")}},
			"it has 4 subjects, want at most 3"},
		"no name":         {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{room("", "9/1m")}}, `name of a subject is "", want 1 to 8 letters a to z`},
		"nine letters":    {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{room("customers", "9/1m")}}, `name of a subject is "customers"`},
		"a capital":       {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{room("roomId", "9/1m")}}, `name of a subject is "roomId"`},
		"twice":           {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{room("room", "9/1m"), room("room", "8/1m")}}, `subject "room": the activity, a limit or another subject has that name`},
		"as the activity": {Activity{Name: "write", Limit: policy.Must("10/1m"), Subjects: []Subject{room("write", "9/1m")}}, `subject "write": the activity`},
		"as a limit":      {Activity{Limit: policy.Must("minute: 10/1m, day: 90/1d"), Subjects: []Subject{room("day", "9/1m")}}, `subject "day": the activity, a limit`},
		"no limit":        {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{{Name: "room"}}}, `subject "room" has no limit`},
		"a reservoir":     {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{room("room", "reservoir 9/1m ahead 15m")}}, `subject "room": a reservoir`},
		"beside one":      {Activity{Limit: policy.Must("reservoir 9/1m ahead 15m"), Subjects: []Subject{room("room", "9/1m")}}, `subject "room": a reservoir`},
		"another window":  {Activity{Limit: policy.Must("10/1m"), Subjects: []Subject{tier(room("room", "9/1m"), "9/1h")}}, `subject "room": tier "pro"`},
		"too fast":        {Activity{Hold: true, Limit: policy.Must("10/1m"), Subjects: []Subject{room("room", "9000/1m")}}, `subject "room": `},
		"no name in a group": {Activity{Group: "content", Limit: policy.Must("writes: 10/1m"), Subjects: []Subject{room("room", "60/1m")}},
			`subject "room": limit "60/1m" has no name, want one in the group "content"`},
		"without the user": {Activity{Unlimited: true, Subjects: []Subject{room("room", "60/1m")}}, "nlimited"},
	} {
		if tt.a.Name == "" {
			tt.a.Name = "act"
		}
		err := Guards{{Name: "g", Message: "m", Activities: []Activity{tt.a}}}.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error that contains %q", name, err, tt.want)
		}
	}
	// Activities of a group share the limit of a room by subject and name.
	group := func(limit string) Guards {
		return Guards{{Name: "g", Message: "m", Activities: []Activity{
			{Name: "a", Group: "content", Limit: policy.Must("writes: 10/1m"), Subjects: []Subject{room("room", "writes: 60/1m")}},
			{Name: "b", Group: "content", Limit: policy.Must("writes: 10/1m"), Subjects: []Subject{room("room", limit)}},
		}}}
	}
	if err := group("writes: 30/1m cost 2, day: 9/day").Validate(); err != nil {
		t.Error(err)
	}
	err := group("writes: 60/1h").Validate()
	if err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("another window: %v, want an error that names both activities", err)
	}
}
