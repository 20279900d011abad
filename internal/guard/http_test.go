package guard_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// call asks over HTTP, and returns status, headers and body.
func (b *bench) call(method, body string, encoded bool) (status float64, headers, answer fields) {
	b.t.Helper()
	event := fields{
		"version": "2.0", "headers": fields{"content-type": "application/json"},
		"requestContext": fields{"http": fields{"method": method, "path": "/"}, "accountId": "1"},
		"body":           body, "isBase64Encoded": encoded,
	}
	raw, err := json.Marshal(event)
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := b.Invoke(b.t.Context(), raw)
	if err != nil {
		b.t.Fatal(err)
	}
	reply := parse(b.t, out)
	return reply["statusCode"].(float64), reply["headers"].(fields), parse(b.t, []byte(reply["body"].(string)))
}

func TestHTTP(t *testing.T) {
	b := newBench(t)
	b.now = start.Add(17500 * time.Millisecond)
	b.RefusalIsError = true // over HTTP a refusal is an answer all the same
	const nine = `{"userId": "` + canary + `", "activity": "create_post", "count": 9}`
	status, headers, got := b.call("POST", base64.StdEncoding.EncodeToString([]byte(nine)), true)
	if status != 200 || got["allowed"] != true || got["granted"] != 9.0 {
		t.Errorf("%v %v", status, got)
	}
	want := fields{"Content-Type": "application/json", "RateLimit-Policy": `"create_post";q=10;w=60`, "RateLimit": `"create_post";r=1;t=43`}
	if diff := cmp.Diff(want, headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}

	status, headers, got = b.call("POST", nine, false)
	want = fields{
		"Content-Type": "application/problem+json", "Retry-After": "43",
		"RateLimit-Policy": `"create_post";q=10;w=60`, "RateLimit": `"create_post";r=1;t=43`,
	}
	if diff := cmp.Diff(want, headers); status != 429 || diff != "" {
		t.Errorf("%v, headers (-want +got):\n%s", status, diff)
	}
	wantBody := fields{
		"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Too Many Requests", "status": 429.0,
		"violated-policies": []any{"create_post"}, "allowed": false, "reason": "limited", "userId": canary, "activity": "create_post",
		"op": "check", "limit": 10.0, "activityCount": 9.0, "remaining": 1.0, "waitTime": 42500.0, "resetAt": float64(end),
		"windowKey": float64(window), "granted": 0.0, "message": message,
	}
	if diff := cmp.Diff(wantBody, got); diff != "" {
		t.Errorf("body of a 429 (-want +got):\n%s", diff)
	}

	// A status is 200 whatever it says, and a partial grant is too.
	status, _, got = b.call("POST", `{"userId": "`+canary+`", "activity": "create_post", "count": 9, "op": "status"}`, false)
	if status != 200 || got["allowed"] != false {
		t.Errorf("status: %v %v", status, got)
	}
	status, _, got = b.call("POST", `{"userId": "`+canary+`", "activity": "create_post", "count": 9, "partial": true}`, false)
	if status != 200 || got["granted"] != 1.0 || got["message"] != message {
		t.Errorf("partial: %v %v", status, got)
	}
	b.now = b.now.Add(42499 * time.Millisecond) // a wait of 1 ms is at least one second
	if _, headers, _ = b.call("POST", nine, false); headers["Retry-After"] != "1" {
		t.Errorf("headers: %v", headers)
	}
	status, headers, _ = b.call("POST", `{"userId": "`+canary+`", "activity": "like"}`, false)
	if diff := cmp.Diff(fields{"Content-Type": "application/json"}, headers); status != 200 || diff != "" {
		t.Errorf("unlimited: %v, headers (-want +got):\n%s", status, diff)
	}
}

func TestHTTPErrors(t *testing.T) {
	b := newBench(t)
	b.DenyOutage = true
	b.store.away = errAway
	ask := `{"userId": "` + canary + `", "activity": "create_post"}`
	for name, tt := range map[string]struct {
		method, body string
		encoded      bool
		want         fields
	}{
		"GET": {"GET", "", false, fields{"status": 405.0, "title": "Method Not Allowed", "detail": `method is "GET", want POST`}},
		"bad input": {"POST", `{"activity": "like"}`, false, fields{
			"status": 400.0, "title": "Bad Request", "errorType": "ValidationError",
			"detail": "userId is missing or empty, want 1 to 128 printable ASCII characters without a space",
		}},
		"no body":    {"POST", ``, false, fields{"status": 400.0, "title": "Bad Request", "errorType": "ValidationError", "detail": "event is empty, want a JSON object"}},
		"not base64": {"POST", `{}`, true, fields{"status": 400.0, "title": "Bad Request", "errorType": "ValidationError", "detail": "body is not base64, but isBase64Encoded is true"}},
		"outage": {"POST", ask, false, fields{
			"type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "status": 503.0,
			"title": "Service Unavailable", "errorType": "Unavailable", "detail": "the table does not exist",
		}},
	} {
		status, headers, got := b.call(tt.method, tt.body, tt.encoded)
		if diff := cmp.Diff(tt.want, got); diff != "" || status != tt.want["status"] || headers["Content-Type"] != "application/problem+json" {
			t.Errorf("%s: %v %v (-want +got):\n%s", name, status, headers, diff)
		}
		if (headers["Allow"] == "POST") != (status == 405) {
			t.Errorf("%s: %v", name, headers)
		}
	}
}

// An event that only speaks of a requestContext is no HTTP event.
func TestNotHTTP(t *testing.T) {
	b := newBench(t)
	for _, e := range []string{
		`{"userId": "u1", "activity": "create_post", "requestContext": {"http": null}}`,
		`{"userId": "u1", "activity": "create_post", "requestContext": {"stage": "v1"}}`,
	} {
		if out, err := b.Invoke(t.Context(), []byte(e)); err == nil {
			t.Errorf("%s is answered %s", e, out)
		}
	}
}
