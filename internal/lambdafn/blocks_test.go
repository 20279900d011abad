package lambdafn_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

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
		if err := liveedit.Block(t.Context(), table, liveedit.Change{At: time.Now(), By: "test"}, b); err != nil {
			t.Fatal(err)
		}
	}
	block("spammer-4711", "")
	block("halfway-4711", "create_post")
	i := r.start(t, "posts-guard")
	i.Ready(t)
	for range 500 { // the read may take longer than the decision that began it
		if a, _ := ask(t, i, `{"userId": "spammer-4711", "activity": "create_post", "op": "status"}`); a.Reason == "blocked" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
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
