package httpguard_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/client/httpguard"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// Functions that answer nothing, or a status.
func refuses(status int) func(http.ResponseWriter, *http.Request, client.Decision) {
	return func(w http.ResponseWriter, _ *http.Request, _ client.Decision) {
		if status != 0 {
			w.WriteHeader(status)
		}
	}
}

// statusOf posts to a server with this handler, and returns the status of its answer; 0 if it
// closes the connection. The handler has ended then.
func statusOf(h http.Handler) (status int) {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the panics
	server.Start()
	defer server.Close()
	if response, err := http.Post(server.URL, "text/plain", http.NoBody); err == nil {
		_ = response.Body.Close()
		status = response.StatusCode
	}
	return status
}

func failsSilently(http.ResponseWriter, *http.Request, error) {}

// Whatever a callback does, nobody passes by mistake, and no refusal is answered 200.
func TestNoCallbackLetsARequestPass(t *testing.T) {
	full := guardsBy(t, inMemory(cricket.Posts), client.Allow)
	testkit.Must(full.Check(t.Context(), "create_post", client.Request{UserID: "full", Count: 10}))(t)
	away := guardsBy(t, down{context.DeadlineExceeded}, client.Allow)
	user := func(*http.Request) string { return "full" }
	aborts := func(*http.Request) string { panic(http.ErrAbortHandler) }
	nobody := func(*http.Request) string { return "" }
	negative := func(*http.Request) client.Request { return client.Request{Count: -1} }
	another := func(*http.Request) client.Request { return client.Request{UserID: "u2"} }
	room := func(id string) func(*http.Request) map[string]string {
		return func(*http.Request) map[string]string { return map[string]string{"room": id} }
	}
	for name, tt := range map[string]struct {
		limit  httpguard.Middleware
		status int // 0: the connection is closed
	}{
		"User is nil":            {httpguard.Middleware{Guards: away}, 0},
		"User panics":            {httpguard.Middleware{Guards: away, User: aborts}, 0},
		"User is empty":          {httpguard.Middleware{Guards: away, User: nobody}, 500},
		"Skip panics":            {httpguard.Middleware{Guards: away, User: user, Skip: func(*http.Request) bool { panic("skip") }}, 0},
		"Request panics":         {httpguard.Middleware{Guards: away, User: user, Request: func(*http.Request) client.Request { panic("request") }}, 0},
		"Request is wrong":       {httpguard.Middleware{Guards: away, User: user, Request: negative}, 500},
		"Request has a user":     {httpguard.Middleware{Guards: full, User: user, Request: another}, 429},
		"Subjects panics":        {httpguard.Middleware{Guards: away, Activity: "write", User: user, Subjects: func(*http.Request) map[string]string { panic("room") }}, 0},
		"Subjects is nil":        {httpguard.Middleware{Guards: away, Activity: "write", User: user, Subjects: func(*http.Request) map[string]string { return nil }}, 500},
		"a subject is empty":     {httpguard.Middleware{Guards: away, Activity: "write", User: user, Subjects: room("")}, 500},
		"Refused does nothing":   {httpguard.Middleware{Guards: full, User: user, Refused: refuses(0)}, 429},
		"Refused only announces": {httpguard.Middleware{Guards: full, User: user, Refused: refuses(103)}, 429},
		"Refused answers":        {httpguard.Middleware{Guards: full, User: user, Refused: refuses(409)}, 409},
		"Refused panics":         {httpguard.Middleware{Guards: full, User: user, Refused: func(http.ResponseWriter, *http.Request, client.Decision) { panic("refused") }}, 0},
		"Refused flushes": {httpguard.Middleware{Guards: full, User: user, Refused: func(w http.ResponseWriter, _ *http.Request, _ client.Decision) {
			_ = http.NewResponseController(w).Flush()
		}}, 200},
		"Refused takes the connection": {httpguard.Middleware{Guards: full, User: user, Refused: func(w http.ResponseWriter, _ *http.Request, _ client.Decision) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = c.Close()
			}
		}}, 0},
		"Failed does nothing": {httpguard.Middleware{Guards: full, User: nobody, Failed: failsSilently}, 500},
		"Failed panics":       {httpguard.Middleware{Guards: full, User: nobody, Failed: func(http.ResponseWriter, *http.Request, error) { panic("failed") }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			passed := false
			if tt.limit.Activity == "" {
				tt.limit.Activity = "create_post"
			}
			status := statusOf(tt.limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true })))
			if status != tt.status || passed {
				t.Errorf("%d, want %d; passed: %v", status, tt.status, passed)
			}
		})
	}
}

// The app's clock can be wrong. So t in RateLimit goes by the guard's: by at in an answer
// that has it, and otherwise by Date.
func TestTheHeadersGoByTheGuardsClock(t *testing.T) {
	const at, later = 1_700_000_030_400, 9_100 // a moment in 2023, and milliseconds until resetAt
	for name, tt := range map[string]struct {
		status  int
		receipt string
		t       int
	}{
		"at":   {http.StatusOK, fmt.Sprintf(`"allowed":true,"granted":1,"at":%d,"requestId":"r1"`, at), 10},
		"Date": {http.StatusTooManyRequests, `"allowed":false,"granted":0`, 10}, // 400 ms earlier than at
	} {
		server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.UnixMilli(at).UTC().Format(http.TimeFormat))
			if r.URL.Path == "/" { // by URL
				w.WriteHeader(tt.status)
			}
			_, _ = fmt.Fprintf(w, `{"activity":"create_post","op":"check","limit":10,"remaining":1,"waitTime":0,"resetAt":%d,%s}`, at+later, tt.receipt)
		})
		for by, urls := range map[string]map[string]string{"Invoke": nil, "URL": {"posts-guard": server.URL}} {
			g := testkit.Must(client.New(t.Context(), client.Options{URLs: urls, Client: lambda.New(lambda.Options{
				Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{},
			})}))(t)
			w := serve(t, httpguard.Middleware{Guards: g, Activity: "posts-guard/create_post", User: u1})
			if got, want := w.Header().Get("RateLimit"), fmt.Sprintf(`"create_post";r=1;t=%d`, tt.t); got != want {
				t.Errorf("%s by %s: %d, %s, want %s", name, by, w.Code, got, want)
			}
		}
	}
}
