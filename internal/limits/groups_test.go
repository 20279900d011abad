package limits_test

import (
	"fmt"
	"testing"

	. "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// content returns a guard with activities of the group content, by name and limit.
func content(name string, activities ...[2]string) Guard {
	g := Guard{Name: name, Message: "m"}
	for _, a := range activities {
		g.Activities = append(g.Activities, Activity{Name: a[0], Group: "content", Limit: policy.Must(a[1])})
	}
	return g
}

// Each sentence says what to change. If two activities are at odds, it names both.
func TestWhatAGroupCannotBe(t *testing.T) {
	posts := content("posts-guard", [2]string{"create_post", "posts: 10/1m, writes: 100/1h cost 5"})
	with := func(a Activity) Guards {
		a.Name, a.Group = "add_comment", "content"
		return Guards{posts, {Name: "comments-guard", Message: "m", Activities: []Activity{a}}}
	}
	for want, all := range map[string]Guards{
		`comments-guard, activity "add_comment": limit "100/1h" has no name, want one in the group "content", as in "writes: 100/1h"`:                                                                              with(Activity{Limit: policy.Must("100/1h")}),
		`activities "create_post" and "add_comment" of the group "content": window of limit "writes" of "writes: 100/1d" is 1d, want 1h as in "posts: 10/1m, writes: 100/1h cost 5", with which it shares a count`: with(Activity{Limit: policy.Must("writes: 100/1d")}),
		`comments-guard, activity "add_comment": tier "gold": "200/1h" has no name, want one as in "writes: 100/1h", with which it shares a count`:                                                                 with(Activity{Limit: policy.Must("writes: 100/1h"), Tiers: Tiers{"gold": policy.Must("200/1h")}}),
		`comments-guard, activity "add_comment": it is unlimited and has a limit, a group, subjects or Hold`:                                                                                                       with(Activity{Unlimited: true}),
		`comments-guard, activity "add_comment": "writes: 100/1h, pace: 600/1m" is too fast for Hold: limit is 600 in 1m, want at most 500, because the item keeps an id for each request of the last 20m; ` +
			"divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units": with(Activity{Limit: policy.Must("writes: 100/1h, pace: 600/1m"), Hold: true}),
		`comments-guard, activity "add_comment": "pace: 501/1m" is too fast for Hold: limit is 501 in 1m, want at most 500, because the item keeps an id for each request of the last 20m; ` +
			"divide the limit among several user ids, such as u1-0 to u1-9, or count in larger units": with(Activity{Limit: policy.Must("pace: 60/1m"), Tiers: Tiers{"gold": policy.Must("pace: 501/1m")}, Hold: true}),
		`activity "create_post": its group has the name of the activity "content" of b-guard; give the group a name of its own`: {content("posts-guard", [2]string{"create_post", "writes: 9/1h"}), {Name: "b-guard", Message: "m", Activities: []Activity{{Name: "content", Limit: policy.Must("10/1m")}}}},
		`a-guard, activity "a": group contains '.', want a to z and _`:                                                          {{Name: "a-guard", Message: "m", Activities: []Activity{{Name: "a", Group: "my.group", Limit: policy.Must("w: 9/1h")}}}},
		`a-guard, activity "a": group has 37 characters, want 1 to 36`:                                                          {{Name: "a-guard", Message: "m", Activities: []Activity{{Name: "a", Group: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Limit: policy.Must("w: 9/1h")}}}},
		`a-guard, activity "a": limit "w: 9/1h" has a name, want one only if there are several limits or a group`:               {{Name: "a-guard", Message: "m", Activities: []Activity{{Name: "a", Limit: policy.Must("w: 9/1h")}}}},
	} {
		if got := fmt.Sprint(all.Validate()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if linked, err := all.Link(); err == nil || linked != nil {
			t.Errorf("%s: it is linked", want)
		}
	}
}

// In a group, the limits of all activities and tiers lie beside one another. Then the
// shortest of them keeps the item as long as the longest counts.
func TestLink(t *testing.T) {
	const now = 1_700_000_000_000
	long := policy.Must("day: 500/1d")
	all := Guards{
		content("posts-guard", [2]string{"create_post", "posts: 10/1m"}),
		{Name: "other-guard", Message: "m", Activities: []Activity{
			{Name: "add_comment", Group: "content", Limit: policy.Must("writes: 9/1h"), Tiers: Tiers{"gold": policy.Must("writes: 99/1h")}},
			{Name: "pin", Limit: policy.Must("log 100/12h")},
			{Name: "like", Unlimited: true},
			{Name: "upload", Group: "files", Limit: long},
		}},
		content("days-guard", [2]string{"report", "day: 100/1d"}),
	}
	linked, err := all.Link()
	if err != nil {
		t.Fatal(err)
	}
	_, longest := long.Item(now)
	for _, name := range []string{"create_post", "add_comment", "report"} {
		for _, tier := range []string{"", "gold"} {
			_, a, _ := linked.Activity(name)
			if _, expires := a.For(tier).Item(now); expires != longest {
				t.Errorf("the item of %s for tier %q is kept until %d, want %d, as long as a day counts", name, tier, expires, longest)
			}
		}
	}
	for _, name := range []string{"pin", "upload"} {
		_, a, _ := linked.Activity(name)
		_, was, _ := all.Activity(name)
		_, got := a.Limit.Item(now)
		if _, want := was.Limit.Item(now); got != want {
			t.Errorf("the item of %s is kept until %d, want %d as before", name, got, want)
		}
	}
	_, before, _ := all.Activity("create_post")
	if _, expires := before.Limit.Item(now); expires >= longest {
		t.Error("Link changes the guards that it gets")
	}
	if got := fmt.Sprint(len(all.Grouped()), len(linked.Grouped())); got != "4 4" {
		t.Errorf("%s activities are in groups, want 4", got)
	}
}
