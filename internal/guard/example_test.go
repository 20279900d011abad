package guard_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// newExample returns a guard with the activity "vote", at most one a minute.
// Its clock stands still, 20 s after a window began.
func newExample() *guard.Handler {
	return &guard.Handler{
		Guard: limits.Guard{
			Name:       "votes-guard",
			Message:    "One vote a minute, please.",
			Activities: []limits.Activity{{Name: "vote", Limit: policy.Must("1/1m")}},
		},
		Limiter: &ratelimit.Limiter{
			Store: new(memstore.Store),
			Now:   func() time.Time { return time.UnixMilli(1_700_000_060_000) },
		},
		BypassRoles: []string{"admin"},
	}
}

// Lambda calls Invoke with the bytes of an event. The second vote of the same
// user is refused, which is an answer and not an error.
func ExampleHandler_Invoke() {
	h := newExample()
	for _, requestID := range []string{"r1", "r2"} {
		event := fmt.Sprintf(`{"userId": "u1", "activity": "vote", "requestId": %q}`, requestID)
		answer, err := h.Invoke(context.Background(), []byte(event))
		fmt.Println(string(answer), err)
	}
	_, err := h.Invoke(context.Background(), []byte(`{"userId": "u1", "activity": "like"}`))
	fmt.Println(err)
	// Output:
	// {"allowed":true,"reason":"ok","userId":"u1","activity":"vote","op":"check","limit":1,"activityCount":1,"remaining":0,"waitTime":0,"resetAt":1700000100000,"windowKey":28333334,"granted":1,"at":1700000060000,"requestId":"r1","crossed":100} <nil>
	// {"allowed":false,"reason":"limited","userId":"u1","activity":"vote","op":"check","limit":1,"activityCount":1,"remaining":0,"waitTime":40000,"resetAt":1700000100000,"windowKey":28333334,"granted":0,"message":"One vote a minute, please."} <nil>
	// activity is "like", want one of votes-guard's: vote
}

// A program in the same process calls Decide, without JSON.
func ExampleHandler_Decide() {
	h := newExample()
	for _, r := range []guard.Request{
		{UserID: "u1", Activity: "vote"},
		{UserID: "u1", Activity: "vote"},
		{UserID: "u1", Activity: "vote", Roles: []string{"admin"}},
		{UserID: "u1", Activity: "vote", Op: guard.Reset},
		{UserID: "u1", Activity: "vote"},
	} {
		a, err := h.Decide(context.Background(), r)
		fmt.Println(a.Op, a.Allowed, a.Reason, err)
	}
	// Output:
	// check true ok <nil>
	// check false limited <nil>
	// check true bypassed <nil>
	// reset true ok <nil>
	// check true ok <nil>
}
