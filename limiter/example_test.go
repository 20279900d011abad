package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/limiter"
)

var photos = []guards.Guard{{
	Name:    "photos-guard",
	Message: "Too many photos. Please try again later.",
	Activities: []guards.Activity{
		{Name: "upload_photo", Limit: "2/1m"},
		{Name: "use_tokens", Limit: "1000/1d", Hold: true},
		{Name: "send_photo", Limit: "10/1m", Subjects: []guards.Subject{{Name: "room", Limit: "1/1m"}}},
		{Name: "convert", Limit: "log 1/10m"},
	},
}}

// The clock of the examples.
func noon() time.Time { return time.Date(2026, 11, 28, 12, 0, 15, 0, time.UTC) }

func Example() {
	ctx := context.Background()
	l, err := limiter.InMemory(photos, noon) // on a table: limiter.New(ctx, photos, limiter.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		d, err := l.Decide(ctx, guards.Request{UserID: "u1", Activity: "upload_photo"})
		fmt.Println(d.Allowed, d.Reason, d.Remaining, d.RetryAfter(), err)
	}
	// Output:
	// true ok 1 0s <nil>
	// true ok 0 0s <nil>
	// false limited 0 45s <nil>
}

// The request is wrong, so nothing is counted.
func ExampleLimiter_Decide_error() {
	l, _ := limiter.InMemory(photos, noon)
	_, err := l.Decide(context.Background(), guards.Request{UserID: "u1", Activity: "upload_photo", Count: 3})
	fmt.Println(errors.Is(err, guards.ErrValidation), err)
	// Output: true count is 3, want at most 2, the limit: waiting would never help, but partial grants what fits
}

// The table does not answer. Then this process's memory decides by the same limits, or, with
// deny, nobody gets through.
func ExampleLimiter_Decide_outage() {
	ctx := context.Background()
	nobody := "http://127.0.0.1:1" // no table is there
	cfg := aws.Config{Region: "eu-central-1", BaseEndpoint: &nobody, Credentials: aws.AnonymousCredentials{}}
	for _, choice := range []string{"allow", "deny"} {
		l, _ := limiter.New(ctx, photos, limiter.Options{
			Config: &cfg, OnOutage: choice, DecisionTimeout: 20 * time.Millisecond,
			Log: slog.New(slog.DiscardHandler), Metrics: "off",
		})
		d, err := l.Decide(ctx, guards.Request{UserID: "u1", Activity: "upload_photo"})
		fmt.Println(d.Allowed, d.Reason, errors.Is(err, guards.ErrUnavailable))
	}
	// Output:
	// true unavailable false
	// false  true
}

// Of several actions, as many are granted as fit.
func ExampleLimiter_Decide_partial() {
	l, _ := limiter.InMemory(photos, noon)
	d, _ := l.Decide(context.Background(), guards.Request{UserID: "u1", Activity: "upload_photo", Count: 3, Partial: true})
	fmt.Println(d.Allowed, d.Granted, d.Message)
	// Output: true 2 Too many photos. Please try again later.
}

// A check is given back with its receipt.
func ExampleLimiter_Decide_release() {
	ctx := context.Background()
	l, _ := limiter.InMemory(photos, noon)
	d, _ := l.Decide(ctx, guards.Request{UserID: "u1", Activity: "upload_photo"})
	back, _ := l.Decide(ctx, guards.Request{UserID: "u1", Activity: "upload_photo", Op: guards.Release, At: d.At, RequestID: d.RequestID})
	fmt.Println(d.Remaining, back.Remaining)
	// Output: 1 2
}

// Another user has sent a photo in this room in this minute.
func ExampleLimiter_Decide_subjects() {
	ctx := context.Background()
	l, _ := limiter.InMemory(photos, noon)
	for _, user := range []string{"u1", "u2"} {
		d, _ := l.Decide(ctx, guards.Request{UserID: user, Activity: "send_photo", Subjects: map[string]string{"room": "r42"}})
		fmt.Printf("%t %q\n", d.Allowed, d.LimitedBy)
	}
	// Output:
	// true ""
	// false "room"
}

// The client has slots, settling and middleware. With a limiter, it asks no function.
func ExampleLimiter_client() {
	ctx := context.Background()
	l, _ := limiter.InMemory(photos, noon)
	g, err := client.New(ctx, client.Options{Local: l})
	if err != nil {
		fmt.Println(err)
		return
	}
	reserved, _ := g.Check(ctx, "use_tokens", client.Request{UserID: "u1", Count: 400})
	_ = g.Settle(ctx, reserved, 140) // the answer had 140 tokens
	status, _ := g.Status(ctx, "use_tokens", client.Request{UserID: "u1"})
	fmt.Println(reserved.Remaining, status.Remaining)

	slot, _ := g.Slot(ctx, "convert", client.Request{UserID: "u1"})
	beside, _ := g.Check(ctx, "convert", client.Request{UserID: "u1"})
	slot.Release(ctx)
	fmt.Println(slot.Allowed, beside.Allowed)
	// Output:
	// 600 860
	// true false
}
