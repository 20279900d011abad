package invokeapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// A handler is a function of a test.
type handler func(context.Context) ([]byte, error)

func (h handler) Invoke(ctx context.Context, _ []byte) ([]byte, error) { return h(ctx) }

// A function has its own timeout, and only that: a caller that closes the connection does not end it.
func TestAFunctionHasItsTimeout(t *testing.T) {
	waits := handler(func(ctx context.Context) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for _, kind := range []string{"RequestResponse", "Event"} {
		synctest.Test(t, func(t *testing.T) {
			server := &invokeapi.Server{Functions: map[string]invokeapi.Function{"f": {Handler: waits, Timeout: 3 * time.Second}}}
			ctx, leave := context.WithCancel(t.Context())
			leave()
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/2015-03-31/functions/f/invocations", strings.NewReader("{}"))
			r.Header.Set("X-Amz-Invocation-Type", kind)
			began := time.Now()
			server.ServeHTTP(httptest.NewRecorder(), r)
			server.Wait() // for an Event
			if took := time.Since(began); took != 3*time.Second {
				t.Errorf("%s: the function ends after %v", kind, took)
			}
		})
	}
}

// A Function URL answers 502 for a function that fails.
func TestAFailedFunctionIsABadGateway(t *testing.T) {
	server := &invokeapi.Server{Functions: map[string]invokeapi.Function{"f": {URL: true, Timeout: time.Second, Handler: handler(func(context.Context) ([]byte, error) {
		return nil, context.Canceled
	})}}}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/f", strings.NewReader("{}")))
	if w.Code != http.StatusBadGateway {
		t.Errorf("status %d", w.Code)
	}
}
