package httpguard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/cric-talk/guards/activities"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/client/httpguard"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

func ExampleMiddleware() {
	chat := local{&guard.Handler{Guard: cricket.Chat, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}}}
	guards, err := client.New(context.Background(), client.Options{Activities: activities.All, Client: chat}) // leave Client out to ask AWS
	if err != nil {
		fmt.Println(err)
		return
	}
	limit := httpguard.Middleware{
		Guards:   guards,
		Activity: "send_message",
		User:     func(*http.Request) string { return "u1" }, // who is logged in
	}
	send := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	for range 2 {
		w := httptest.NewRecorder()
		send.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/messages", http.NoBody))
		fmt.Printf("%d, retry after %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 201, retry after ""
	// 429, retry after "5"
}
