package guards_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/cric-talk/guards"
)

func TestValidateRefuses(t *testing.T) {
	const ten = "10/1m"
	for want, a := range map[string]Activity{
		"name has 0 characters":            {Limit: ten},
		"name has 37 characters":           {Name: strings.Repeat("a", 37), Limit: ten},
		"a to z":                           {Name: "create post", Limit: ten},
		`name is "__proto__", want`:        {Name: "__proto__", Limit: ten},
		`name is "_a", want it to begin`:   {Name: "_a", Limit: ten},
		`name is "a_", want it to begin a`: {Name: "a_", Limit: ten},
		"it is unlimited and has":          {Name: "a", Unlimited: true, Tiers: Tiers{"t": ten}},
		"it has no limit":                  {Name: "a"},
		`tier is "", want 1 to 36`:         {Name: "a", Limit: ten, Tiers: Tiers{"": ten}},
		`tier is "a|b", want 1 to 36`:      {Name: "a", Limit: ten, Tiers: Tiers{"a|b": ten}},
		`tier "t" has no limit`:            {Name: "a", Limit: ten, Tiers: Tiers{"t": ""}},
		`did you mean "10/2m"?`:            {Name: "a", Limit: ten, Tiers: Tiers{"t": "log 10/2m"}},
		`tier "u": window of "log 10/1h"`:  {Name: "a", Limit: "log 9/1m", Tiers: Tiers{"t": "log 8/1m", "u": "log 10/1h"}},
	} {
		if err := Validate([]Guard{{Name: "g", Message: "m", Activities: []Activity{a}}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error that contains %s", a, err, want)
		}
	}
	if err := Validate([]Guard{{Name: "g", Message: "m", Activities: []Activity{{Name: "a", Unlimited: true}, {Name: "a", Unlimited: true}}}}); err == nil {
		t.Error("an activity that is listed twice is valid")
	}
	if err := Validate([]Guard{{Name: "g"}}); err == nil {
		t.Error("a guard without activities is valid")
	}
}

// SQS delivers a job up to a second late.
func TestAQueueNeedsWindowsOfTwoSeconds(t *testing.T) {
	for limit, refused := range map[string]string{
		"reservoir 10/2s ahead 15m":                   "",
		"reservoir 10/1999ms ahead 15m":               "reservoir 10/1999ms ahead 15m",
		"reservoir 10/1s ahead 15m":                   "reservoir 10/1s ahead 15m",
		"jobs: reservoir 10/1s ahead 1m, day: 200/1d": "reservoir 10/1s ahead 1m",
		"10/1s": "", // gives no places
	} {
		g := Guard{Name: "g", Message: "m", Activities: []Activity{
			{Name: "free", Unlimited: true}, {Name: "job", Limit: Limit(limit)}, {Name: "other", Limit: "reservoir 10/1m ahead 15m"},
		}}
		if err := Validate([]Guard{g}); err != nil {
			t.Errorf("%s without a queue: %v", limit, err)
		}
		g.DelayedQueue = true
		want := "<nil>"
		if refused != "" {
			want = `g, activity "job": limit is "` + refused + `", want a window of at least 2s for the delayed queue, because SQS delivers a job up to a second late`
		}
		if got := fmt.Sprint(Validate([]Guard{g})); got != want {
			t.Errorf("%s: error %s, want %s", limit, got, want)
		}
	}
}

func TestAListIsValidAsAWhole(t *testing.T) {
	guard := func(name string, queue bool, activities ...string) Guard {
		g := Guard{Name: name, Message: "m", DelayedQueue: queue}
		for _, a := range activities {
			g.Activities = append(g.Activities, Activity{Name: a, Limit: "reservoir 5/1m ahead 5m"})
		}
		return g
	}
	for want, all := range map[string][]Guard{
		"limits.go lists no guard in All, want at least one": {},
		"<nil>": {guard("a-guard", true, "a"), guard("b-guard", false, "b", "c")},
		"two guards have the name a-guard: give each guard a name of its own":                                        {guard("a-guard", false, "a"), guard("a-guard", false, "b")},
		`b-guard, activity "a": a-guard has an activity of this name; give each activity a name of its own`:          {guard("a-guard", false, "a"), guard("b-guard", false, "a")},
		"a-guard and b-guard have a DelayedQueue, but there is one queue: move the activities of b-guard to a-guard": {guard("a-guard", true, "a"), guard("b-guard", true, "b")},
		"c-guard: it has a DelayedQueue, and no activity with a reservoir whose jobs wait there":                     {{Name: "c-guard", Message: "m", DelayedQueue: true, Activities: []Activity{{Name: "c", Unlimited: true}}}},
		"c-guard: Description has 257 bytes, want at most 256, as Lambda allows":                                     {{Name: "c-guard", Message: "m", Description: strings.Repeat("d", 257), Activities: []Activity{{Name: "c", Unlimited: true}}}},
		`guard "b-guard" needs a name, a message and activities`:                                                     {guard("a-guard", true, "a"), guard("b-guard", false)},
	} {
		if got := fmt.Sprint(Validate(all)); got != want {
			t.Errorf("%v: %s, want %s", all, got, want)
		}
	}
}

// Each sentence tells what to change.
func TestWhatASubjectCannotBe(t *testing.T) {
	const minute = "10/1m"
	room := func(limit Limit) Subject { return Subject{Name: "room", Limit: limit} }
	for want, a := range map[string]Activity{
		"<nil>": {Limit: minute, Subjects: []Subject{
			room("log 9/1h"), {Name: "tenant", Limit: minute, Tiers: Tiers{"pro": "20/1m"}, Optional: true}, {Name: "country", Limit: "day: 9/day, pace: bucket 5/1m"},
		}},
		"it is unlimited and has a limit, a group, subjects or Hold": {Unlimited: true, Subjects: []Subject{room("9/1m")}},
		"it has 4 subjects, want at most 3": {Limit: minute, Subjects: []Subject{
			{Name: "a", Limit: minute}, {Name: "b", Limit: minute}, {Name: "c", Limit: minute}, {Name: "d", Limit: minute},
		}},
		`name of a subject is "", want 1 to 8 letters a to z, such as room`:          {Limit: minute, Subjects: []Subject{{Limit: minute}}},
		`name of a subject is "buildings", want 1 to 8 letters a to z, such as room`: {Limit: minute, Subjects: []Subject{{Name: "buildings", Limit: minute}}},
		`name of a subject is "room_1", want 1 to 8 letters a to z, such as room`:    {Limit: minute, Subjects: []Subject{{Name: "room_1", Limit: minute}}},

		`subject "write": the activity, a limit or another subject has that name`:                              {Limit: minute, Subjects: []Subject{{Name: "write", Limit: minute}}},
		`subject "day": the activity, a limit or another subject has that name`:                                {Limit: "day: 9/1d, hour: 5/1h", Subjects: []Subject{{Name: "day", Limit: minute}}},
		`subject "room": the activity, a limit or another subject has that name`:                               {Limit: minute, Subjects: []Subject{room("5/1m"), room("5/1m")}},
		`subject "room" has no limit`:                                                                          {Limit: minute, Subjects: []Subject{{Name: "room"}}},
		`subject "room": a reservoir gives places to users alone; want another kind of limit beside a subject`: {Limit: minute, Subjects: []Subject{room("reservoir 9/1m")}},
		`subject "hall": a reservoir gives places to users alone; want another kind of limit beside a subject`: {Limit: "reservoir 9/1m", Subjects: []Subject{{Name: "hall", Limit: minute}}},

		`subject "room": limit "w: 9/1m" has a name, want one only if there are several limits or a group`: {Limit: minute, Subjects: []Subject{room("w: 9/1m")}},
		`subject "room": limit "9/1m" has no name, want one in the group "content", as in "writes: 9/1m"`:  {Limit: "w: 10/1m", Group: "content", Subjects: []Subject{room("9/1m")}},
		`subject "room": tier "pro": window of "9/1h" is 1h, want 1m as in "10/1m", with which it shares a count`: {
			Limit: minute, Subjects: []Subject{{Name: "room", Limit: minute, Tiers: Tiers{"pro": "9/1h"}}},
		},
		`subject "room": "900/1m" is too fast for Hold: limit is 900 in 1m, want at most 500, because the item keeps an id for each request of the last 20m; ` +
			"divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units": {Limit: minute, Hold: true, Subjects: []Subject{room("900/1m")}},
	} {
		if want != "<nil>" {
			want = `g, activity "write": ` + want
		}
		a.Name = "write"
		if got := fmt.Sprint(Validate([]Guard{{Name: "g", Message: "m", Activities: []Activity{a}}})); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Subjects are compared with other activities, too.
func TestSubjectsOfSeveralActivities(t *testing.T) {
	write := func(name, group, limit, subject, its string) Guard {
		return Guard{Name: name + "-guard", Message: "m", Activities: []Activity{
			{Name: name, Group: group, Limit: Limit(limit), Subjects: []Subject{{Name: subject, Limit: Limit(its)}}},
		}}
	}
	for want, all := range map[string][]Guard{
		"<nil>": {write("post", "content", "w: 9/1m", "room", "all: 9/1m"), write("comment", "content", "w: 9/1m", "tenant", "all: 9/1d")},
		`activities "post" and "comment" of the group "content": window of limit "all" of "all: 9/1d" is 1d, want 1m as in "all: 9/1m", with which it shares a count`: {
			write("post", "content", "w: 9/1m", "room", "all: 9/1m"), write("comment", "content", "w: 9/1m", "room", "all: 9/1d"),
		},
		`post-guard, activity "post": its subject "room" has the name of an activity of room-guard; give the subject a name of its own`: {
			write("post", "", "9/1m", "room", "9/1m"), write("room", "", "9/1m", "tenant", "9/1m"),
		},
	} {
		if got := fmt.Sprint(Validate(all)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A lock of one activity of a group is a lock of all, so each tier has the same lockout.
func TestLockoutsOfAGroup(t *testing.T) {
	try := func(limit string, tiers Tiers) Activity {
		return Activity{Name: "change_mail", Group: "account", Limit: Limit(limit), Tiers: tiers}
	}
	const other = `activities "sign_in" and "change_mail" of the group "account": limit "try" of "try: lockout 9/15m for 30m" is lockout 9/15m for 30m, ` +
		`want lockout 5/15m for 30m as in "try: lockout 5/15m for 30m", because a lock of one is a lock of both`
	for _, tt := range []struct {
		a    Activity
		want string
	}{
		{try("try: lockout 5/15m for 30m, day: 20/1d", nil), "<nil>"},
		{try("try: lockout 9/15m for 30m", nil), other},
		{try("try: lockout 5/15m for 30m", Tiers{"staff": "try: lockout 9/15m for 30m"}), other},
	} {
		signIn := Activity{Name: "sign_in", Group: "account", Limit: "try: lockout 5/15m for 30m"}
		got := fmt.Sprint(Validate([]Guard{{Name: "account-guard", Message: "m", Activities: []Activity{signIn, tt.a}}}))
		if got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// content returns a guard with activities of the group content, by name and limit.
func content(name string, activities ...[2]string) Guard {
	g := Guard{Name: name, Message: "m"}
	for _, a := range activities {
		g.Activities = append(g.Activities, Activity{Name: a[0], Group: "content", Limit: Limit(a[1])})
	}
	return g
}

// Each sentence tells what to change. If two activities are at odds, it names
// both.
func TestWhatAGroupCannotBe(t *testing.T) {
	posts := content("posts-guard", [2]string{"create_post", "posts: 10/1m, writes: 100/1h cost 5"})
	with := func(a Activity) []Guard {
		a.Name, a.Group = "add_comment", "content"
		return []Guard{posts, {Name: "comments-guard", Message: "m", Activities: []Activity{a}}}
	}
	for want, all := range map[string][]Guard{
		`comments-guard, activity "add_comment": limit "100/1h" has no name, want one in the group "content", as in "writes: 100/1h"`:                                                                              with(Activity{Limit: "100/1h"}),
		`activities "create_post" and "add_comment" of the group "content": window of limit "writes" of "writes: 100/1d" is 1d, want 1h as in "posts: 10/1m, writes: 100/1h cost 5", with which it shares a count`: with(Activity{Limit: "writes: 100/1d"}),
		`comments-guard, activity "add_comment": tier "gold": "200/1h" has no name, want one as in "writes: 100/1h", with which it shares a count`:                                                                 with(Activity{Limit: "writes: 100/1h", Tiers: Tiers{"gold": "200/1h"}}),
		`comments-guard, activity "add_comment": it is unlimited and has a limit, a group, subjects or Hold`:                                                                                                       with(Activity{Unlimited: true}),
		`comments-guard, activity "add_comment": "writes: 100/1h, pace: 600/1m" is too fast for Hold: limit is 600 in 1m, want at most 500, because the item keeps an id for each request of the last 20m; ` +
			"divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units": with(Activity{Limit: "writes: 100/1h, pace: 600/1m", Hold: true}),
		`comments-guard, activity "add_comment": tier "gold": "pace: 501/1m" is too fast for Hold: limit is 501 in 1m, want at most 500, because the item keeps an id for each request of the last 20m; ` +
			"divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units": with(Activity{Limit: "pace: 60/1m", Tiers: Tiers{"gold": "pace: 501/1m"}, Hold: true}),
		`activity "create_post": its group has the name of the activity "content" of b-guard; give the group a name of its own`: {content("posts-guard", [2]string{"create_post", "writes: 9/1h"}), {Name: "b-guard", Message: "m", Activities: []Activity{{Name: "content", Limit: "10/1m"}}}},
		`a-guard, activity "a": group contains '.', want a to z and _`:                                                          {{Name: "a-guard", Message: "m", Activities: []Activity{{Name: "a", Group: "my.group", Limit: "w: 9/1h"}}}},
		`a-guard, activity "a": group has 37 characters, want 1 to 36`:                                                          {{Name: "a-guard", Message: "m", Activities: []Activity{{Name: "a", Group: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Limit: "w: 9/1h"}}}},
		`a-guard, activity "a": limit "w: 9/1h" has a name, want one only if there are several limits or a group`:               {{Name: "a-guard", Message: "m", Activities: []Activity{{Name: "a", Limit: "w: 9/1h"}}}},
	} {
		if got := fmt.Sprint(Validate(all)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A page with two mistakes of each kind. Each is told by its place.
func TestAllMistakesAreToldAtOnce(t *testing.T) {
	long := strings.Repeat("d", 257)
	wrong := func(name string) Guard {
		return Guard{Name: name + "-guard", Message: "m", Description: long, MemorySize: 64, Activities: []Activity{
			{Name: name + "_a", Limit: "10/1min"},
			{Name: name + "_b", Limit: "10/1m", Tiers: Tiers{"gold": "log 10/1m", "x y": "10/1m"}},
			{Name: name + "_c", Group: "content", Limit: "100/1h"},
			{Name: name + "_d", Unlimited: true, Limit: "10/1m"},
			{Name: name + "_e", Limit: "10/1m", Subjects: []Subject{{Name: "Room", Limit: "10/1m"}, {Name: "hall"}, {Name: "tenant", Limit: "1/1"}}},
			{Name: name + "_f", Limit: "600/1m", Hold: true},
			{Name: name + " g", Limit: "1000/day in Nowhere/City"},
		}}
	}
	err := Validate([]Guard{wrong("x"), wrong("y"), {Name: "z-guard", Message: "m"}, {Name: "z-guard", Message: "m"}})
	const want = `x-guard: Description has 257 bytes, want
x-guard: MemorySize is 64, want
x-guard, activity "x_a": limit is "10/1min": window is "1min", want 1m
x-guard, activity "x_b": tier "gold": "log 10/1m" counts in another way
x-guard, activity "x_b": tier is "x y", want
x-guard, activity "x_c": limit "100/1h" has no name, want one in the group "content"
x-guard, activity "x_d": it is unlimited and has a limit
x-guard, activity "x_e": name of a subject is "Room", want
x-guard, activity "x_e": subject "hall" has no limit
x-guard, activity "x_e": subject "tenant": limit is "1/1": window is "1", want
x-guard, activity "x_f": "600/1m" is too fast for Hold
x-guard, activity "x g": name contains ' ', want
x-guard, activity "x g": limit is "1000/day in Nowhere/City": time zone is "Nowhere/City", want
`
	got := strings.Split(fmt.Sprint(err), "\n")
	lines := strings.Split(want+strings.ReplaceAll(strings.ReplaceAll(want, "x-guard", "y-guard"), `"x_`, `"y_`)+
		"guard \"z-guard\" needs a name\nguard \"z-guard\" needs a name\ntwo guards have the name z-guard", "\n")
	for i := range max(len(got), len(lines)) {
		switch {
		case i >= len(got):
			t.Errorf("no mistake %s", lines[i])
		case i >= len(lines) || !strings.HasPrefix(got[i], strings.ReplaceAll(lines[i], `"x g"`, `"`+got[i][:1]+` g"`)):
			t.Errorf("mistake %d: %s", i+1, got[i])
		}
	}
}
