package client_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
)

func Example() {
	ctx := context.Background()
	guards, err := client.New(ctx, client.Options{Activities: activities, Client: exampleGuard}) // leave Client out to ask AWS
	if err != nil {
		fmt.Println(err)
		return
	}
	err = guards.Guarded(ctx, "create_post", client.Request{UserID: "u1"}, func(d client.Decision) error {
		fmt.Println("posts left in this minute:", d.Remaining)
		return nil // write the post here
	})
	fmt.Println("error:", err)
	// Output:
	// posts left in this minute: 9
	// error: <nil>
}

func ExampleGuards_Check() {
	ctx := context.Background()
	guards, err := client.New(ctx, client.Options{Activities: activities, Client: exampleGuard})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := guards.Check(ctx, "create_post", client.Request{UserID: "u1"})
	switch {
	case err != nil:
		fmt.Println(http.StatusInternalServerError, err)
	case !d.Allowed:
		fmt.Println(http.StatusTooManyRequests, d.Message, d.RetryAfter())
	default:
		fmt.Println(http.StatusCreated)
	}
	// Output: 201
}

// exampleGuard answers as posts-guard does.
var exampleGuard = fake(func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
	return &lambda.InvokeOutput{Payload: []byte(`{"allowed":true,"reason":"ok","userId":"u1","activity":"create_post","op":"check",` +
		`"limit":10,"activityCount":1,"remaining":9,"waitTime":0,"resetAt":1700000040000,"windowKey":28333333,"granted":1,` +
		`"at":1700000000000,"requestId":"r1"}`)}, nil
})
