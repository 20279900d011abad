package fuzz_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// An HTTP event is answered like its body alone: 400 if the body is a
// ValidationError, without a request to the table, and otherwise 200 or 429.
func FuzzHTTP(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `{"userId": "u1", "activity": "create_post"}`, `{"userId": "u1", "activity": "create_post", "count": 20, "partial": true}`,
		`{"userId": "u1", "activity": "send_message"}`, `{"userId": "u1", "activity": "send_message", "op": "status"}`, `{"userId": "\u00e9"}`,
		`{"userId": "u1", "activity": "update_member_role", "job": {}}`, `eyJ1c2VySWQiOiAidTEifQ==`,
	} {
		f.Add(byte(0), "POST", body, false)
		f.Add(byte(5), "POST", body, true)
		f.Add(byte(7), "GET", body, false)
	}
	f.Fuzz(func(t *testing.T, which byte, method, body string, encoded bool) {
		g := cricket.All[int(which)%len(cricket.All)]
		var e events.LambdaFunctionURLRequest
		e.RequestContext.HTTP.Method, e.Body, e.IsBase64Encoded = method, body, encoded
		event, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b, alone := newBench(g), newBench(g)
		status := statusOf(t, b, event)
		want := []int{200, 429}
		switch inner, err := bodyOf(event); {
		case method != "POST":
			want = []int{405}
		case err != nil:
			want = []int{400}
		case strings.Contains(string(inner), "requestContext"):
			return // alone, it can be an HTTP event
		default:
			if _, err := alone.send(t, inner); invalid(err) {
				want = []int{400}
			}
		}
		if !slices.Contains(want, status) {
			t.Fatalf("%s is answered with status %d, want one of %v", event, status, want)
		}
		if status != 200 && status != 429 && b.table.requests > 0 {
			t.Fatalf("%s: %d requests to the table and the status %d", event, b.table.requests, status)
		}
	})
}

// Any bytes with a request context are answered with JSON, or refused as an
// event.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"requestContext": {"http": {"method": "POST"}}, "body": "{}"}`, `{"requestContext": {"http": null}, "body": 1}`,
		`{"requestContext": {"http": {"method": "POST"}}, "body": "e30=", "isBase64Encoded": true, "body": "x"}`,
		"{\"requestContext\": {\"http\": {\"method\": \"P\xff\"}}}", `"requestContext"`, `{"requestContext": {"http": {"method": 1}}}`,
		`{"requestContext": {"http": {"method": "POST"}}, "body": "{\"userId\": \"u1\", \"activity\": \"pin\"}"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		b := newBench(cricket.Pins)
		answer, err := b.send(t, event)
		if err != nil {
			if !invalid(err) {
				t.Fatalf("%q: %v, want a ValidationError", event, err)
			}
		} else if !json.Valid(answer) {
			t.Fatalf("%q is answered with %q", event, answer)
		}
	})
}

// statusOf sends an HTTP event and returns the status of the last answer. Each
// answer has a body in JSON.
func statusOf(t *testing.T, b *bench, event []byte) int {
	t.Helper()
	answer, err := b.send(t, event)
	if err != nil {
		t.Fatalf("%s: %v, want an answer", event, err)
	}
	var r events.LambdaFunctionURLResponse
	if err := json.Unmarshal(answer, &r); err != nil || !json.Valid([]byte(r.Body)) {
		t.Fatalf("%s is answered with %s: %v", event, answer, err)
	}
	if want := map[bool]string{true: "application/json", false: "application/problem+json"}[r.StatusCode == 200]; r.Headers["Content-Type"] != want {
		t.Fatalf("%s: the type of the answer is %q, want %q", event, r.Headers["Content-Type"], want)
	}
	return r.StatusCode
}

// bodyOf returns the body of an HTTP event.
func bodyOf(event []byte) ([]byte, error) {
	var e events.LambdaFunctionURLRequest
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, err
	}
	if e.IsBase64Encoded {
		return base64.StdEncoding.DecodeString(e.Body)
	}
	return []byte(e.Body), nil
}
