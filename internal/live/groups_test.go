package live_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

// grouped returns a post and a comment of the group content, and an activity that
// counts alone.
func grouped(t testing.TB, posts, comments string) limits.Guards {
	t.Helper()
	all := []guards.Guard{
		{Name: "posts-guard", Message: "m", Activities: []guards.Activity{{
			Name: "create_post", Group: "content", Limit: guards.Limit(posts), Tiers: guards.Tiers{"premium": guards.Limit(posts)},
		}}},
		{Name: "comments-guard", Message: "m", Activities: []guards.Activity{
			{Name: "add_comment", Group: "content", Limit: guards.Limit(comments)},
			{Name: "alone", Limit: "minute: 10/1m, writes: 100/1h"},
		}},
	}
	linked, err := limits.Link(all)
	testkit.OK(t, err)
	return linked
}

// A timeline of a group's live limits. Posts cost 5 of the writes.
func TestALiveLimitOfAGroup(t *testing.T) {
	guards := grouped(t, "posts: 10/1m, writes: 100/1h cost 5", "writes: 100/1h")
	table := &table{}
	f, log := logged(table, guards)
	// inForce returns what inGroup returns: the posts and the writes of a post, and the writes of a
	// premium one and of a comment.
	inForce := func(posts, writes, premium, comments string) string {
		return "posts: " + posts + ", writes: " + writes + " cost 5; posts: 10/1m, writes: " + premium + " cost 5; writes: " + comments
	}
	const (
		number = `"content.writes": {"limit": "200/1h"}`
		tier   = `"content.writes": {"limit": "200/1h", "tiers": {"premium": "300/1h"}}`
		posts  = `"content.posts": {"limit": "7/1m"}`
		own    = `"create_post": {"limit": "posts: 9/1m, writes: 90/1h"}`
		mode   = `"add_comment": {"mode": "shadow"}`
	)
	for _, step := range []struct{ what, overrides, want string }{
		{"the number of the group", number, inForce("10/1m", "200/1h", "100/1h", "200/1h")},
		{"of a tier", tier, inForce("10/1m", "200/1h", "300/1h", "200/1h")},
		{"of a limit that one activity has", tier + "," + posts, inForce("7/1m", "200/1h", "300/1h", "200/1h")},
		{"an activity's own limit wins", tier + "," + posts + "," + own + "," + mode, inForce("9/1m", "90/1h", "300/1h", "200/1h")},
		{"and is undone alone", tier + "," + posts + "," + mode, inForce("7/1m", "200/1h", "300/1h", "200/1h")},
		{"the tier is undone", number + "," + posts, inForce("7/1m", "200/1h", "100/1h", "200/1h")},
		{"the number is undone", posts, inForce("7/1m", "100/1h", "100/1h", "100/1h")},
	} {
		table.put("{" + step.overrides + "}")
		mustRead(t, f)
		if got := inGroup(f, guards); got != step.want {
			t.Errorf("%s:\n got %s\nwant %s", step.what, got, step.want)
		}
	}
	if got := log.String(); strings.Contains(got, "WARN") || strings.Contains(got, "ERROR") {
		t.Errorf("something is reported: %s", got)
	}
	_, alone, _ := guards.Activity("alone") // it has a limit of the same name, and no group
	if a, _ := f.Limits().Activity(alone); a.Limit.String() != "minute: 10/1m, writes: 100/1h" {
		t.Errorf("an activity without a group has %s", a.Limit)
	}
}

// In a group, a lock of one activity is a lock of all. So a lockout changes for all of its
// activities, or for none. A tier that the code does not have goes by the group's ordinary one.
func TestALiveLockoutOfAGroup(t *testing.T) {
	guards := grouped(t, "posts: 10/1m, try: lockout 5/15m for 30m", "try: lockout 5/15m for 30m")
	for overrides, want := range map[string]string{
		`{"create_post": {"limit": "posts: 20/1m, try: lockout 5/15m for 30m"}}`: "[]",
		`{"create_post": {"limit": "posts: 20/1m, try: lockout 9/15m for 30m"}}`: `[create_post: limit "try" is lockout 9/15m for 30m, want lockout 5/15m for 30m; change it for the whole group, as content.try]`,
		`{"create_post": {"tiers": {"premium": "posts: 20/1m, try: lockout 5/15m for 1m"}}}`: `[create_post: tier "premium": limit "try" is lockout 5/15m for 1m, ` +
			`want lockout 5/15m for 30m; change it for the whole group, as content.try]`,
		`{"content.try": {"limit": "lockout 9/15m for 1m"}}`:                                                                       "[]",
		`{"content.try": {"limit": "lockout 9/15m for 1m"}, "create_post": {"limit": "posts: 20/1m, try: lockout 9/15m for 1m"}}`:  "[]",
		`{"content.try": {"limit": "lockout 4/15m for 30m"}, "add_comment": {"tiers": {"premium": "try: lockout 4/15m for 30m"}}}`: "[]",
		`{"content.try": {"limit": "lockout 9/1h for 1m"}}`:                                                                        `[content.try: create_post: a live limit keeps`,
	} {
		var s Settings
		testkit.OK(t, json.Unmarshal([]byte(`{"activities": `+overrides+`}`), &s))
		if _, problems := s.Limits(guards, nil); !strings.HasPrefix(fmt.Sprint(problems), want) {
			t.Errorf("%s: %v, want %s", overrides, problems, want)
		}
	}
}

// inGroup returns the limits in force: of a post, of one of the tier premium, and of a
// comment. All of them keep what lies beside them in the item.
func inGroup(f *Follower, guards limits.Guards) string {
	var texts []string
	for _, c := range [][2]string{{"create_post", ""}, {"create_post", "premium"}, {"add_comment", ""}} {
		_, code, _ := guards.Activity(c[0])
		now := f.Limits().Terms(Query{Activity: code, Tier: c[1]})
		texts = append(texts, now.Limit.String())
		_, got := now.Limit.Item(1_700_000_000_000)
		if _, want := code.Limit.Item(1_700_000_000_000); got != want || now.Group != "content" {
			texts = append(texts, fmt.Sprintf("(its item, of %q, is kept until %d and not %d)", now.Group, got, want))
		}
	}
	return strings.Join(texts, "; ")
}

func TestALiveLimitOfAGroupThatIsRefused(t *testing.T) {
	guards := grouped(t, "posts: 10/1m, pace: bucket 10/1m, writes: 100/1h cost 5", "writes: 100/1h")
	for _, tt := range []struct{ name, tier, limit, mode, want string }{
		{"content.likes", "", "200/1h", "", `group is "content.likes", want a group and the name of a limit that its activities have, such as content.writes`},
		{"posts.writes", "", "200/1h", "", `group is "posts.writes", want a group`},
		{"create_post.writes", "", "200/1h", "", `group is "create_post.writes", want a group`},
		{"content.", "", "200/1h", "", `group is "content.", want a group`},
		{".writes", "", "200/1h", "", `group is ".writes", want a group`},
		{"content.writes", "gold", "200/1h", "", `content.writes: tier is "gold", want a tier of an activity in the group`},
		{"content.writes", "", "200/1d", "", `window of limit "writes"`},
		{"content.writes", "", "sliding 200/1h", "", `did you mean "writes: 200/1h"?`},
		{"content.writes", "", "200/1h cost 2", "", `cost of limit "writes"`}, // the comments would get this cost, too
		{"content.writes", "", "4/1h", "", "writes: cost is 5, want at most the 4 that one action can take"},
		{"content.writes", "", "now: 200/1h", "", "writes: now:"},
		{"content.pace", "", "bucket 1/2h", "", "counts for longer than the item that it shares is kept"},
		{"content.writes", "", "", "off", "content.writes: a limit of a group has no mode, but an activity has one"},
	} {
		o := Override{Limit: tt.limit, Mode: tt.mode}
		if tt.tier != "" {
			o = Override{Tiers: map[string]string{tt.tier: tt.limit}}
		}
		_, problems := Settings{Activities: map[string]Override{tt.name: o}}.Limits(guards, nil)
		if err := errors.Join(problems...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s %s %s: %v, want an error with %s", tt.name, tt.tier, tt.limit, tt.mode, err, tt.want)
		}
	}
	if _, err := Instead(guards[0].Activities[0], "", "", "posts: 10/1m, pace: bucket 2/1m, writes: 100/1h"); err != nil {
		t.Errorf("a bucket that is full again sooner: %v", err)
	}
}

// What a deploy has changed under a live limit of a group is reported, and each
// activity keeps its last good limit or the code's limit. Other names apply.
func TestALiveLimitOfAGroupAfterADeploy(t *testing.T) {
	before := grouped(t, "posts: 10/1m, writes: 100/1h cost 5", "writes: 100/1h")
	table := &table{}
	table.put(`{"content.writes": {"limit": "200/1h"}, "content.posts": {"limit": "7/1m"}}`)
	for name, tt := range map[string]struct {
		posts, comments string
		inForce         string
		report          string
	}{
		"nothing has changed": {"posts: 10/1m, writes: 100/1h cost 5", "writes: 100/1h", "posts: 7/1m, writes: 200/1h cost 5; writes: 200/1h", ""},
		"another number":      {"posts: 9/1m, writes: 50/1h", "writes: 60/1h", "posts: 7/1m, writes: 200/1h; writes: 200/1h", ""},
		"another window": {
			"posts: 10/1m, writes: 100/1d cost 5", "writes: 100/1d", "posts: 7/1m, writes: 100/1d cost 5; writes: 100/1d",
			`create_post: a live limit keeps the kind`,
		},
		"another name": {"posts: 10/1m, all: 100/1h", "all: 100/1h", "posts: 7/1m, all: 100/1h; all: 100/1h", `a group without a limit in the code`},
	} {
		guards := grouped(t, tt.posts, tt.comments)
		f, log := logged(table, guards)
		mustRead(t, f)
		all := strings.Split(inGroup(f, guards), "; ")
		if got := all[0] + "; " + all[2]; got != tt.inForce {
			t.Errorf("%s: %s, want %s", name, got, tt.inForce)
		}
		if !reports(log, tt.report) || tt.report == "" && reports(log, "content") {
			t.Errorf("%s: the log has %q, want %q in it", name, log, tt.report)
		}
	}
	// An edit by hand: the last good number stays.
	f, log := logged(table, before)
	for i, document := range []string{
		`{"activities": {"content.writes": {"limit": "200/1h"}}}`,
		`{"activities": {"content.writes": {"limit": "x"}, "content.posts": {"limit": "8/1m"}, "content.": {"limit": "1/1h"}}}`,
	} {
		table.Stored = Stored{Version: int64(10 + i), Document: []byte(document)}
		mustRead(t, f)
	}
	if got, want := inGroup(f, before), "posts: 8/1m, writes: 200/1h cost 5; posts: 10/1m, writes: 100/1h cost 5; writes: 200/1h"; got != want {
		t.Errorf("after an edit by hand:\n got %s\nwant %s", got, want)
	}
	for _, want := range []string{"create_post: limit is", "add_comment: limit is", "a group without a limit in the code"} {
		if !reports(log, want) {
			t.Errorf("the log does not report %s:\n%s", want, log)
		}
	}
}

// A live limit of an activity that holds its receipts is as slow as one in the code.
func TestALiveLimitIsTooFastForHold(t *testing.T) {
	code := limits.Activity{Name: "act", Limit: policy.Must("500/1m"), Hold: true}
	for text, ok := range map[string]bool{"499/1m": true, "501/1m": false} {
		if _, err := Instead(code, "", "", text); (err == nil) != ok {
			t.Errorf("%s: %v, want accepted: %v", text, err, ok)
		}
	}
	code.Hold = false
	if _, err := Instead(code, "", "", "501/1m"); err != nil {
		t.Error(err)
	}
}
