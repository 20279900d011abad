package liveedit_test

import (
	"context"
	"fmt"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// An operator doubles the limit of create_post, and a guard follows.
func Example() {
	ctx := context.Background()
	settings := &table{} // in a deployment: dynamoedit.New

	set := func(activity, limit string) error {
		c := liveedit.Change{By: "ann", Op: "set", Activity: activity, Limit: limit, Why: "a launch"}
		return liveedit.Edit(ctx, settings, cricket.All, c, func(s liveedit.Draft) (liveedit.Draft, error) {
			return s.Set(activity, "", limit, ""), nil
		})
	}
	fmt.Println(set("create_post", "20/1m"))
	fmt.Println(set("ingest", "20/1h"))

	f := &live.Follower{Source: settings, Guards: cricket.All}
	f.Refresh(ctx, 0)()
	code, _ := cricket.Posts.Activity("create_post")
	now, _ := f.Limits().Activity(code)
	fmt.Printf("%s in the code, %s now\n", code.Limit, now.Limit)
	// Output:
	// <nil>
	// ingest: a live limit keeps the kind, the window and the cost of the code's limit: "20/1h" counts in another way than "sliding 50/1h", with which it shares a count; did you mean "sliding 20/1h"?
	// 10/1m in the code, 20/1m now
}
