package limits_test

import (
	"testing"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// In a group, the limits of all activities and tiers lie beside one another. Then the
// shortest of them keeps the item as long as the longest counts.
func TestLink(t *testing.T) {
	const now = 1_700_000_000_000
	content := func(name, activity string, limit guards.Limit) guards.Guard {
		return guards.Guard{Name: name, Message: "m", Activities: []guards.Activity{{Name: activity, Group: "content", Limit: limit}}}
	}
	linked, err := Link([]guards.Guard{
		content("posts-guard", "create_post", "posts: 10/1m"),
		{Name: "other-guard", Message: "m", Activities: []guards.Activity{
			{Name: "add_comment", Group: "content", Limit: "writes: 9/1h", Tiers: guards.Tiers{"gold": "writes: 99/1h"}},
			{Name: "pin", Limit: "log 100/12h"},
			{Name: "like", Unlimited: true},
			{Name: "upload", Group: "files", Limit: "day: 500/1d"},
		}},
		content("days-guard", "report", "day: 100/1d"),
		{Name: "votes-guard", Message: "m", Activities: []guards.Activity{{Name: "vote", Group: "polls", Limit: "votes: 10/1m"}}},
		{Name: "polls-guard", Message: "m", Activities: []guards.Activity{
			{Name: "create_poll", Group: "polls", Limit: "polls: bucket 10/1m", Tiers: guards.Tiers{"free": "polls: bucket 10/7d"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, longest := policy.Must("day: 500/1d").Item(now)
	for _, name := range []string{"create_post", "add_comment", "report"} {
		for _, tier := range []string{"", "gold"} {
			_, a, _ := linked.Activity(name)
			if _, expires := a.For(tier).Item(now); expires != longest {
				t.Errorf("the item of %s for tier %q is kept until %d, want %d, as long as a day counts", name, tier, expires, longest)
			}
		}
	}
	for name, limit := range map[string]string{"pin": "log 100/12h", "upload": "day: 500/1d", "vote": "bucket 10/7d"} {
		_, a, _ := linked.Activity(name)
		_, got := a.Limit.Item(now)
		if _, want := policy.Must(limit).Item(now); got != want {
			t.Errorf("the item of %s is kept until %d, want %d, as one of %s", name, got, want, limit)
		}
	}
	if n := len(linked.Grouped()); n != 6 {
		t.Errorf("%d activities are in groups, want 6", n)
	}
}

// A page with a mistake is not linked.
func TestLinkValidates(t *testing.T) {
	if all, err := Link([]guards.Guard{{Name: "g", Message: "m", Activities: []guards.Activity{{Name: "a", Limit: "1/1"}}}}); err == nil || all != nil {
		t.Errorf("%v, %v, want an error", all, err)
	}
}
