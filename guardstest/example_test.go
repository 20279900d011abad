package guardstest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/activities"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/guardstest"
)

// A forum is the app: it asks before it saves a post.
type forum struct{ guards *client.Guards }

func (f forum) post(ctx context.Context, userID string) error {
	return f.guards.Guarded(ctx, "create_post", client.Request{UserID: userID}, func(client.Decision) error {
		return nil // save the post
	})
}

// A test of the app: a user who posts too often is told so.
func Example() {
	t := &testing.T{} // of the test
	limits := guardstest.New()
	app := forum{limits.Client(t, activities.All)}
	fmt.Println(app.post(context.Background(), "u1"))

	limits.Refuse("create_post", guards.Decision{WaitTime: 42_000})
	err := app.post(context.Background(), "u1")
	fmt.Println(errors.Is(err, client.ErrLimited))
	fmt.Println(len(limits.Calls()), "calls")
	// Output:
	// <nil>
	// true
	// 2 calls
}
