// Export takes one of three slots for a user and works. Run it with go run ./examples/slots USER.
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
	// With your list: "export".
	slot, err := guards.Slot(ctx, "exports-guard/export", client.Request{UserID: os.Args[1]})
	switch {
	case err != nil:
		log.Fatal(err)
	case !slot.Allowed:
		fmt.Println("429", slot.Message)
		return
	}
	defer slot.Release(ctx)
	for page := range 3 {
		if slot.Lost() {
			log.Panic("the slot is lost")
		}
		fmt.Println("page", page+1) // render it with slot.Context()
	}
}
