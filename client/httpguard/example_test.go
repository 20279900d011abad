package httpguard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/activities"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/client/httpguard"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/limiter"
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

// Two wrong passwords lock the account. A right one does not count.
func ExampleMiddleware_countIf() {
	page := []guards.Guard{{Name: "doors-guard", Message: "m", Activities: []guards.Activity{{Name: "sign_in", Limit: "lockout 2/15m for 1m"}}}}
	l, err := limiter.InMemory(page, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	app, err := client.New(context.Background(), client.Options{Local: l}) // or Activities: activities.All, to ask AWS
	if err != nil {
		fmt.Println(err)
		return
	}
	limit := httpguard.Middleware{
		Guards:   app,
		Activity: "sign_in",
		User:     func(r *http.Request) string { return r.FormValue("account") }, // who wants to sign in
		CountIf:  func(status int) bool { return status == http.StatusUnauthorized },
	}
	signIn := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("password") != "right" {
			http.Error(w, "wrong password", http.StatusUnauthorized)
		}
	}))
	for _, password := range []string{"right", "wrong", "right", "wrong", "right"} {
		w := httptest.NewRecorder()
		signIn.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/session?account=a7&password="+password, http.NoBody))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 401
	// 200
	// 401
	// 429
}
