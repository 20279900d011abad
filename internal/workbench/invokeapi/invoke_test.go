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

// invoke sends a request to a server whose only function is f.
func invoke(t *testing.T, f handler, kind string) (*invokeapi.Server, *httptest.ResponseRecorder) {
	t.Helper()
	server := &invokeapi.Server{Functions: map[string]invokeapi.Function{"f": {Handler: f, Timeout: 3 * time.Second}}}
	r := httptest.NewRequest(http.MethodPost, "/2015-03-31/functions/f/invocations", strings.NewReader("{}"))
	r.Header.Set("X-Amz-Invocation-Type", kind)
	ctx, leave := context.WithCancel(t.Context())
	leave() // a caller that closes the connection does not end a function
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r.WithContext(ctx))
	return server, w
}

func TestADryRunRunsNothing(t *testing.T) {
	_, w := invoke(t, func(context.Context) ([]byte, error) {
		t.Error("the function runs")
		return nil, nil
	}, "DryRun")
	if w.Code != http.StatusNoContent {
		t.Errorf("status %d", w.Code)
	}
}

// A function has its own timeout, and only that.
func TestAFunctionHasItsTimeout(t *testing.T) {
	for _, kind := range []string{"RequestResponse", "Event"} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			server, _ := invoke(t, func(ctx context.Context) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}, kind)
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
