package ratelimit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// noon is a fixed time, so that the examples always print the same.
func noon() time.Time { return time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) }

// A limit of 3 in each minute allows three actions and refuses the fourth. The
// wait is the time until the next window.
func Example() {
	l := &ratelimit.Limiter{Store: new(memstore.Store), Now: noon}
	for i := range 4 {
		d, err := l.Check(context.Background(), ratelimit.Request{
			UserID: "u1", Activity: "create_post", Policy: policy.Must("3/1m"), Count: 1, ID: fmt.Sprint("request ", i),
		})
		if err != nil {
			fmt.Println(err) // the store did not answer, so nothing is known
			return
		}
		fmt.Println(d.Allowed, d.Reason, d.Used, "of", d.Limit, d.Wait)
	}
	// Output:
	// true ok 1 of 3 0s
	// true ok 2 of 3 0s
	// true ok 3 of 3 0s
	// false limited 3 of 3 1m0s
}

// The action failed after the check, so the caller gives it back. A check is
// given back only once.
func ExampleLimiter_Decide() {
	ctx := context.Background()
	l := &ratelimit.Limiter{Store: new(memstore.Store), Now: noon}
	r := ratelimit.Request{UserID: "u1", Activity: "create_post", Policy: policy.Must("3/1m"), Count: 2, ID: "r1"}

	checked, err := l.Check(ctx, r)
	fmt.Println(checked.Used, "counted", err)

	r.At = checked.At // with r.ID, the receipt of the check
	r.Count = 1
	for range 2 {
		d, err := l.Decide(ctx, ratelimit.Release, r)
		fmt.Println(d.Used, "counted", err)
	}
	// Output:
	// 2 counted <nil>
	// 1 counted <nil>
	// 1 counted <nil>
}

// A program that holds the items itself needs no store. The state of the item is
// a slice.
func ExampleRequest_CountIn() {
	r := ratelimit.Request{Policy: policy.Must("2/1m"), Count: 1}
	var item policy.State
	for range 3 {
		d := r.CountIn(noon().UnixMilli(), &item)
		fmt.Println(d.Allowed, d.Reason, d.Wait)
	}
	// Output:
	// true ok 0s
	// true ok 0s
	// false limited 1m0s
}
