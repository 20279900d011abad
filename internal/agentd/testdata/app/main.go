// App is a function whose app asks the agent beside it. Its event is the name of a user.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/cric-talk/guards/client"
)

func main() {
	guards, err := client.New(context.Background(), client.Options{}) // GUARDS_AGENT says where
	lambda.Start(func(ctx context.Context, user string) (client.Decision, error) {
		if err != nil {
			return client.Decision{}, err
		}
		return guards.Check(ctx, "create_post", client.Request{UserID: user, Count: 6})
	})
}
