package command

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// leased are a group of prepaid limits, and a prepaid room whose users' limit is not prepaid.
var leased = []guards.Guard{
	{Name: "posts-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "post", Limit: "posts: 300/1h prepaid, writes: 1000/1h cost 2 prepaid", Group: "content"},
		{Name: "comment", Limit: "writes: 1000/1h prepaid", Group: "content"},
	}},
	{Name: "rooms-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "write", Limit: "90/1m", Subjects: []guards.Subject{{Name: "room", Limit: "400/1m prepaid"}}},
	}},
}

// A running guard counts by leases. A group of prepaid limits and a prepaid room are judged by
// the promise of a prepaid limit.
func TestVerifyOfPrepaidLimitsTogether(t *testing.T) {
	credentials(t)
	endpoint, _ := serveGuards(t, leased, atPinned)
	for activity, want := range map[string]string{
		"post":  ", at most the limits, as prepaid ones promise: posts ",
		"write": ", at most the lowest limit of a subject, 400, as prepaid ones promise: room ",
	} {
		for _, where := range []string{"", " --region us-east-1 --lambda-endpoint " + endpoint} {
			if status, out, log := command(t, leased, "verify "+activity+" --callers 8"+where); status != done || !strings.Contains(out, want) {
				t.Errorf("verify %s%s: status %d, %s%s, want %q", activity, where, status, out, log, want)
			}
		}
	}
}

// A prepaid item can count more than what was allowed, up to its limit. It is wrong if it counts
// less or above the limit, or if less than the first 100 get through. Other items must count exactly.
func TestVerifyFindsWrongPrepaidCounts(t *testing.T) {
	all := cricket.Link(leased...)
	_, write, _ := all.Activity("write")
	_, post, _ := all.Activity("post")
	_, comment, _ := all.Activity("comment")
	for _, test := range []struct {
		allowed, users, item int64 // how many requests are allowed, and what is added to the users' and the prepaid counts
		want                 bool
	}{
		{allowed: 99}, {allowed: 100, want: true}, {allowed: 150, item: 60, want: true}, {allowed: 150, item: -1},
		{allowed: 150, item: 3000}, {allowed: 150, users: 1}, {allowed: 3000},
	} {
		counted := map[string]int64{}
		allowed := int64(0)
		ask := func(_ context.Context, r guard.Request) (guards.Decision, error) {
			room, own := figures{Name: "room", Limit: 400}, figures{Limit: 90}
			got := guards.Decision{Limit: 90}
			if r.Op == guard.Check && allowed < test.allowed {
				allowed++
				counted[r.UserID]++
				counted[r.Activity]++
				got.Allowed = true
			}
			switch cost := int64(2); r.Activity {
			case "post":
				got.Limit = 300
				units := counted["post"]*cost + counted["comment"]
				got.Limits = []figures{{Name: "posts", Limit: 300, ActivityCount: counted["post"] + test.item}, {Name: "writes", Limit: 500, ActivityCount: (units+1)/cost + test.item}}
			case "comment":
				got.Limit = 1000
				got.Limits = []figures{{Name: "writes", Limit: 1000, ActivityCount: counted["post"]*cost + counted["comment"] + test.item}}
			default:
				room.ActivityCount, own.ActivityCount = allowed+test.item, counted[r.UserID]+test.users
				got.Limits = []figures{own, room}
			}
			return got, nil
		}
		env := session{guards: all, err: io.Discard, now: atPinned}
		c := verifyCommand{Activity: "write", Callers: 1}
		if v, err := c.race(t.Context(), env, ask, []limits.Activity{write}); err != nil || !v.Prepaid || v.Exact != test.want {
			t.Errorf("subjects, %+v: %+v, %v", test, v, err)
		}
		if test.users != 0 {
			continue
		}
		clear(counted)
		allowed = 0
		c.Activity = "post"
		if v, err := c.race(t.Context(), env, ask, []limits.Activity{post, comment}); err != nil || !v.Prepaid || v.Exact != test.want {
			t.Errorf("group, %+v: %+v, %v", test, v, err)
		}
	}
}
