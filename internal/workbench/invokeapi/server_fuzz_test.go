package invokeapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// A recorder is a function that keeps its last event.
type recorder struct{ event []byte }

func (r *recorder) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	r.event = payload
	if len(payload)%3 == 0 {
		return nil, errors.New("refused")
	}
	return []byte(`{"statusCode": 200, "body": "{}"}`), nil
}

// Whatever comes over HTTP, a function gets valid JSON or is not called. As a
// Function URL, it gets every byte of the body, and the names of headers in lower case.
func FuzzServer(f *testing.F) {
	const invocations = "/2015-03-31/functions/posts-guard/invocations"
	for _, seed := range []struct{ method, path, kind, body string }{
		{"POST", invocations, "RequestResponse", `{"userId": "u1"}`},
		{"POST", invocations, "", ``},
		{"POST", invocations, "DryRun", `nonsense`},
		{"POST", "/2015-03-31/functions/arn:aws:lambda:us-east-1:123456789012:function:posts-guard:live/invocations", "", `[]`},
		{"POST", "/2015-03-31/functions/%2e%2e/invocations", "x", "\xff"},
		{"POST", "/posts-guard", "", "{\"userId\": \"\xff\"}"},
		{"DELETE", "//posts-guard/../x", "", ``},
	} {
		f.Add(seed.method, seed.path, seed.kind, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, method, path, kind string, body []byte) {
		var function recorder
		server := &invokeapi.Server{Functions: map[string]invokeapi.Function{
			"posts-guard": {Handler: &function, Timeout: time.Second, URL: true},
		}}
		r := &http.Request{
			Method: method, URL: &url.URL{Path: path}, Host: "localhost", RemoteAddr: "127.0.0.1:1",
			Header: http.Header{"X-Amz-Invocation-Type": {kind}, "X-Amz-Log-Type": {"Tail"}},
			Body:   io.NopCloser(bytes.NewReader(body)),
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r.WithContext(t.Context()))
		server.Wait()
		if w.Code < 200 || w.Code > 599 {
			t.Fatalf("%s %q is answered with status %d", method, path, w.Code)
		}
		if function.event == nil {
			return
		}
		if kind == "DryRun" && path != "/posts-guard" {
			t.Fatalf("%s %q calls the function in a dry run", method, path)
		}
		if !json.Valid(function.event) {
			t.Fatalf("%s %q with the body %q calls the function with %q", method, path, body, function.event)
		}
		if path != "/posts-guard" {
			return
		}
		var e events.LambdaFunctionURLRequest
		err := json.Unmarshal(function.event, &e)
		got, wrong := base64.StdEncoding.DecodeString(e.Body)
		if err != nil || wrong != nil || !bytes.Equal(got, body) || e.Headers["x-amz-log-type"] != "Tail" || len(e.Headers) != len(r.Header) {
			t.Fatalf("the body %q becomes the event %s (%v, %v)", body, function.event, err, wrong)
		}
	})
}
