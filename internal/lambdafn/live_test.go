package lambdafn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// The first decision uses the code's limits and starts the look at the table.
// Live limits apply from the first decision after the look.
func TestLiveLimitsOnTheRealBinary(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	table := dynamoedit.New(dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), r.table).Table())
	testkit.OK(t, liveedit.Edit(t.Context(), table, cricket.All, liveedit.Change{At: time.Now(), By: "test"}, func(s liveedit.Draft) (liveedit.Draft, error) {
		s = s.Set("create_post", "", "12/1m", "").Set("delete_post", "", "", "off").Set("add_comment", "", "7/1m", "")
		return s.Grant(live.Grant{UserID: "vip", Role: "admin", Until: time.Now().Add(time.Hour), Reason: "test"}, time.Now()), nil
	}))
	i := r.start(t, "posts-guard")
	i.Ready(t)
	testkit.InOneWindow(t, time.Minute, 20*time.Second)
	for n, want := range []answer{{Allowed: true, Limit: 10}, {Allowed: true, Limit: 12}} {
		got, _ := ask(t, i, event("create_post"))
		if got.Allowed != want.Allowed || got.Limit != want.Limit {
			t.Errorf("decision %d: %+v, want a limit of %d", n, got, want.Limit)
		}
		follows(t, i, "other", func(a answer) bool { return a.Limit == 12 })
	}
	for range 10 {
		ask(t, i, event("create_post"))
	}
	if a, _ := ask(t, i, event("create_post")); a.Allowed || a.ActivityCount != 12 {
		t.Errorf("decision 13: %+v", a)
	}
	if a, _ := ask(t, i, event("delete_post")); a.Reason != "unlimited" {
		t.Errorf("an activity that is off: %+v", a)
	}
	if a, _ := ask(t, i, `{"userId": "vip", "activity": "create_post"}`); a.Reason != "bypassed" {
		t.Errorf("a granted role: %+v", a)
	}
	if i.Stop(); strings.Contains(i.Logs(), notFollowed) { // a limit of another guard is no reason for a line
		t.Errorf("something is not followed:\n%s", i.Logs())
	}

	// Erasing a user also removes the user's grants.
	cleanup := r.start(t, "cleanup")
	cleanup.Invoke(t, `{"userId": "vip"}`)
	s, _, err := liveedit.Read(t.Context(), table)
	if err != nil || len(s.Grants) != 0 || len(s.Activities) != 3 {
		t.Errorf("after an erasure: %+v, %v", s, err)
	}
}

// follows waits until an instance follows what was set. The look may take longer than the decision
// that began it.
func follows(t *testing.T, i *lambdatest.Instance, user string, set func(answer) bool) {
	t.Helper()
	for range 500 {
		if a, _ := ask(t, i, fmt.Sprintf(`{"userId": %q, "activity": "create_post", "op": "status"}`, user)); set(a) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const notFollowed = `"level":"WARN","message":"live limits not followed"`

// Log lines have the attributes of aws-lambda-go and of Powertools.
func TestLogNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "posts-guard")
	for range 2 {
		i.Invoke(t, `{}`)
	}
	i.Ready(t)
	lines := strings.Split(strings.TrimSpace(i.Logs()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"instance started"`) || !strings.Contains(lines[0], `"service":"posts-guard"`) {
		t.Fatalf("%d lines for a start and two invalid events:\n%s", len(lines), i.Logs())
	}
	for n, line := range lines[1:] {
		var got map[string]any
		testkit.OK(t, json.Unmarshal([]byte(line), &got))
		for _, name := range []string{"timestamp", "level", "message", "requestId", "service"} {
			if got[name] == nil {
				t.Errorf("line %d has no %s: %s", n, name, line)
			}
		}
		if got["cold_start"] != (n == 0) || got["service"] != "posts-guard" {
			t.Errorf("line %d: %s", n, line)
		}
	}
}

// A block is in force from the second decision on, also for a user who may do everything.
// It costs no write, and no log line has the user. Cleanup lifts the blocks of a user that it
// erases, unless its event says otherwise.
func TestABlockOnTheRealBinary(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	table := dynamoedit.New(dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), r.table).Table())
	block := func(user, activity string) {
		t.Helper()
		b := live.Block{UserID: user, Activity: activity, Until: time.Now().Add(time.Hour), Reason: "spam"}
		testkit.OK(t, liveedit.Block(t.Context(), table, liveedit.Change{At: time.Now(), By: "test"}, b))
	}
	block("spammer-4711", "")
	block("halfway-4711", "create_post")
	i := r.start(t, "posts-guard")
	i.Ready(t)
	follows(t, i, "spammer-4711", func(a answer) bool { return a.Reason == "blocked" })
	for event, reason := range map[string]string{
		`{"userId": "spammer-4711", "activity": "create_post", "roles": ["admin"]}`:              "blocked",
		`{"userId": "spammer-4711", "activity": "delete_post", "tier": "premium", "count": 999}`: "blocked",
		`{"userId": "halfway-4711", "activity": "create_post"}`:                                  "blocked",
		`{"userId": "halfway-4711", "activity": "delete_post"}`:                                  "ok",
		`{"userId": "somebody", "activity": "create_post"}`:                                      "ok",
	} {
		if a, _ := ask(t, i, event); a.Reason != reason || a.Allowed != (reason == "ok") {
			t.Errorf("%s: %+v, want %s", event, a, reason)
		}
	}
	if i.Stop(); strings.Contains(i.Logs(), "4711") || strings.Contains(i.Logs(), `"message":"refused"`) {
		t.Errorf("the log names who is blocked:\n%s", i.Logs())
	}

	cleanup := r.start(t, "cleanup")
	cleanup.Invoke(t, `{"userId": "halfway-4711", "keepBlocks": true}`)
	cleanup.Invoke(t, `{"userId": "spammer-4711"}`)
	blocks, _, err := liveedit.ReadBlocks(t.Context(), table)
	if err != nil || len(blocks.All) != 1 || blocks.All[0].UserID != "halfway-4711" {
		t.Errorf("after the erasures: %+v, %v, want one block", blocks, err)
	}
}
