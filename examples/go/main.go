// The program go is an app with net/http. A user can create ten posts in a
// minute.
package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"

	"github.com/cric-talk/guards/activities"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/client/httpguard"
)

func main() {
	if err := run(context.Background()); err != nil {
		slog.Error("the app ends", slog.Any("error", err))
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	guards, err := client.New(ctx, client.Options{
		Activities: activities.All, // guards generate writes this list for your own guards
		OnOutage:   client.OnOutage(os.Getenv("GUARDS_ON_OUTAGE")),
	})
	if err != nil {
		return err
	}
	if err := guards.Ready(ctx, "create_post"); err != nil {
		return err // a missing permission or a wrong name ends the app here, and not at a user's request
	}
	limit := httpguard.Middleware{Guards: guards, Activity: "create_post", User: user}
	mux := http.NewServeMux()
	mux.Handle("POST /posts", logIn(limit.Handler(http.HandlerFunc(createPost))))
	return listen(ctx, mux)
}

// createPost is the app's own work.
func createPost(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
}
