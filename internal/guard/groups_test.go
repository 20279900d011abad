package guard_test

import (
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// linked are two guards whose activities count in one group. A post takes 5 of what a
// comment takes 1 of.
func linked(t *testing.T) limits.Guards {
	t.Helper()
	all, err := limits.Guards{
		{Name: "posts", Message: "m", Activities: []limits.Activity{{Name: "create_post", Group: "content", Limit: policy.Must("posts: 10/1m, writes: 20/1h cost 5")}}},
		{Name: "comments", Message: "m", Activities: []limits.Activity{{Name: "add_comment", Group: "content", Limit: policy.Must("writes: 20/1h")}}},
	}.Link()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each guard answers in the actions of its own activity, and each refuses what the other
// one has used up. An activity of a group has the figures of each limit, also of one.
func TestGuardsOfAGroup(t *testing.T) {
	posts, comments := newBench(t), newBench(t)
	comments.store.Store = posts.store.Store // one table
	all := linked(t)
	posts.Guard, comments.Guard = all[0], all[1]
	const hour = `"resetAt": 1700002800000`
	posts.converse([]exchange{{0, `"activity": "create_post", "count": 3`, `{"allowed": true, "reason": "ok", "limit": 4, "activityCount": 3, "remaining": 1,
		"waitTime": 0, ` + hour + `, "granted": 3, "limits": [
		{"name": "posts", "limit": 10, "activityCount": 3, "remaining": 7, "waitTime": 0, "resetAt": 1700000100000},
		{"name": "writes", "limit": 4, "activityCount": 3, "remaining": 1, "waitTime": 0, ` + hour + `}]}`}})
	comments.converse([]exchange{
		{0, `"activity": "add_comment"`, `{"allowed": true, "reason": "ok", "limit": 20, "activityCount": 16, "remaining": 4, "waitTime": 0, ` + hour + `,
			"granted": 1, "crossed": 80, "limits": [{"name": "writes", "limit": 20, "activityCount": 16, "remaining": 4, "waitTime": 0, ` + hour + `, "crossed": 80}]}`},
	})
	posts.converse([]exchange{{time.Second, `"activity": "create_post"`, `{"allowed": false, "reason": "limited", "limit": 4, "activityCount": 4, "remaining": 0,
		"waitTime": 2759000, ` + hour + `, "granted": 0, "message": "m", "limitedBy": "writes", "limits": [
		{"name": "posts", "limit": 10, "activityCount": 3, "remaining": 7, "waitTime": 0, "resetAt": 1700000100000},
		{"name": "writes", "limit": 4, "activityCount": 4, "remaining": 0, "waitTime": 2759000, ` + hour + `}]}`}})
	_, headers, _ := comments.call("POST", `{"userId": "`+canary+`", "activity": "add_comment"}`, false)
	if headers["RateLimit-Policy"] != `"writes";q=20;w=3600` || headers["RateLimit"] != `"writes";r=3;t=2760` {
		t.Errorf("headers: %v", headers)
	}
	if got := comments.mustAsk(`{"activity": "add_comment", "op": "reset"}`); got["activityCount"] != 0.0 {
		t.Errorf("a reset: %v", got)
	}
	if got := posts.mustAsk(`{"activity": "create_post", "op": "status"}`); got["activityCount"] != 0.0 || got["limits"].([]any)[0].(fields)["activityCount"] != 0.0 {
		t.Errorf("a post after a reset of the comments: %v, want the whole group cleared", got)
	}
}

// A check that holds its receipt is known for 15 minutes, and given back as late.
func TestAGuardHoldsReceipts(t *testing.T) {
	for hold, late := range map[bool]float64{true: 400, false: 4000} {
		b := newBench(t)
		b.Guard = limits.Guard{Name: "g", Message: "m", Activities: []limits.Activity{{Name: "complete", Limit: policy.Must("100000/1d"), Hold: hold}}}
		b.mustAsk(`{"activity": "complete", "count": 4000, "requestId": "r1"}`)
		b.now = b.now.Add(14 * time.Minute)
		release := `{"activity": "complete", "op": "release", "count": 3600, "requestId": "r1", "at": 1700000040000}`
		for range 2 {
			if got := b.mustAsk(release); got["activityCount"] != late {
				t.Errorf("with Hold %v, after a release %v are counted, want %v", hold, got["activityCount"], late)
			}
		}
	}
}
