// Complete reserves 4,000 tokens for a user and settles for what was used. Run it with go run ./examples/reserve USER.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/cric-talk/guards/client"
)

func main() {
	ctx := context.Background()
	guards, err := client.New(ctx, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	reserved, err := guards.Check(ctx, "exports-guard/complete", client.Request{UserID: os.Args[1], Count: 4000}) // 100000/1d, Hold
	switch {
	case err != nil:
		log.Fatal(err)
	case !reserved.Allowed:
		fmt.Println("429", reserved.Message)
		return
	}
	used := int64(1400) // ask the model
	if err := guards.Settle(ctx, reserved, used); err != nil {
		log.Print(err) // an outage: the whole reservation stays counted
	}
	fmt.Println(used, "tokens")
}
