package guard_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestErrorsOverHTTPAreProblems(t *testing.T) {
	ask := `{"userId": "` + canary + `", "activity": "create_post"}`
	for name, tt := range map[string]struct {
		method, body string
		encoded      bool
		want         fields
	}{
		"GET":    {"GET", "", false, fields{"status": 405.0, "title": "Method Not Allowed", "detail": `method is "GET", want POST`}},
		"DELETE": {"DELETE", ask, false, fields{"status": 405.0, "title": "Method Not Allowed", "detail": `method is "DELETE", want POST`}},
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
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.DenyOutage, b.RefusalIsError = true, true
			b.store.away = errAway
			status, headers, got := b.call(tt.method, tt.body, tt.encoded)
			if diff := cmp.Diff(tt.want, got); diff != "" || status != tt.want["status"] {
				t.Errorf("%v (-want +got):\n%s", status, diff)
			}
			wantHeaders := fields{"Content-Type": "application/problem+json"}
			if status == 405 {
				wantHeaders["Allow"] = "POST"
			}
			if diff := cmp.Diff(wantHeaders, headers); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// The limit of 64 KiB holds for the body, whether it is encoded or not.
func TestABodyOverHTTPMayHave64KiB(t *testing.T) {
	b := newBench(t)
	body := `{"userId": "` + canary + `", "activity": "create_post", "tier": "` + strings.Repeat("t", 70<<10) + `"}`
	status, _, got := b.call("POST", body, false)
	if status != 400 || got["errorType"] != "ValidationError" || b.store.asked != 0 {
		t.Errorf("%v %v after %d requests, want 400 after none", status, got, b.store.asked)
	}
}

// A body over HTTP is UTF-8 too, in both of its forms.
func TestABodyOverHTTPIsUTF8(t *testing.T) {
	body := `{"userId": "u1", "activity": "create_post", "tier": "` + "\xff" + `"}`
	for name, event := range map[string]string{
		"as it is": `{"requestContext": {"http": {"method": "POST"}}, "body": "` + strings.ReplaceAll(body, `"`, `\"`) + `"}`,
		"base64":   `{"requestContext": {"http": {"method": "POST"}}, "isBase64Encoded": true, "body": "` + base64.StdEncoding.EncodeToString([]byte(body)) + `"}`,
	} {
		b := newBench(t)
		out, err := b.Invoke(t.Context(), []byte(event))
		if err != nil {
			t.Fatal(err)
		}
		reply := parse(t, out)
		if got := parse(t, []byte(reply["body"].(string))); reply["statusCode"] != 400.0 || !strings.HasSuffix(got["detail"].(string), "is not UTF-8") || b.store.asked != 0 {
			t.Errorf("%s: %v after %d requests, want 400 after none", name, got, b.store.asked)
		}
	}
}

// An event with a requestContext but without its http member is no HTTP event.
// Then requestContext is an unknown field.
func TestARequestContextWithoutHTTPIsNoCall(t *testing.T) {
	b := newBench(t)
	for _, event := range []string{
		`{"userId": "u1", "activity": "create_post", "requestContext": {"http": null}}`,
		`{"userId": "u1", "activity": "create_post", "requestContext": {"stage": "v1"}}`,
	} {
		out, err := b.Invoke(t.Context(), []byte(event))
		if err == nil {
			t.Errorf("%s is answered: %s", event, out)
		}
		b.wantInvalid(event, "event", err)
	}
}
