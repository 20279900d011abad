package guard_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	app "github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// call asks over HTTP, and returns status, headers and body. A Function URL and API Gateway send
// events of this form, with more fields, which mean nothing.
func (b *bench) call(method, body string, encoded bool) (status float64, headers, answer fields) {
	b.t.Helper()
	event := fields{
		"version": "2.0", "routeKey": "POST /guard", "headers": fields{"content-type": "application/json"},
		"rawQueryString": "userId=u2", "queryStringParameters": fields{"userId": "u2"}, "cookies": []string{"a=b"},
		"requestContext": fields{"http": fields{"method": method, "path": "/"}, "accountId": "1"},
		"body":           body, "isBase64Encoded": encoded,
	}
	raw, err := json.Marshal(event)
	testkit.OK(b.t, err)
	reply := b.answer(string(raw))
	return reply["statusCode"].(float64), reply["headers"].(fields), parse(b.t, []byte(reply["body"].(string)))
}

// post asks about create_post with further members of the event.
func (b *bench) post(members string) (status float64, headers, answer fields) {
	b.t.Helper()
	return b.call("POST", `{"userId": "`+canary+`", "activity": "create_post"`+members+`}`, false)
}

// Each row is asked 17.5 s after start, and in the middle of a day of 23 hours in Berlin. A
// body can come as base64.
func TestStatusAndHeaders(t *testing.T) {
	calendar := app.Guard{Name: "calls-guard", Message: "m", Activities: []app.Activity{{Name: "call", Limit: policy.Must("9/day in Europe/Berlin")}}}
	const post = `"activity": "create_post", "count": 9`
	for name, tt := range map[string]struct {
		guard          app.Guard
		before, event  string // members of an event that is sent first, and of the one whose answer counts
		away           bool   // whether the table is
		status         float64
		policy, limits string // headers
		answer         fields // some fields
	}{
		"a check":                    {cricket.Posts, "", post, false, 200, `"create_post";q=10;w=60`, `"create_post";r=1;t=43`, fields{"granted": 9.0}},
		"a status that is refused":   {cricket.Posts, post, post + `, "op": "status"`, false, 200, `"create_post";q=10;w=60`, `"create_post";r=1;t=43`, fields{"allowed": false}},
		"a partial grant":            {cricket.Posts, post, post + `, "partial": true`, false, 200, `"create_post";q=10;w=60`, `"create_post";r=0;t=43`, fields{"granted": 1.0}},
		"unlimited":                  {cricket.Posts, "", `"activity": "like"`, false, 200, "", "", fields{"reason": "unlimited"}},
		"bypassed":                   {cricket.Posts, "", post + `, "roles": ["admin"]`, false, 200, "", "", fields{"reason": "bypassed"}},
		"allowed from memory":        {cricket.Posts, "", post, true, 200, `"create_post";q=10;w=60`, `"create_post";r=1;t=43`, fields{"reason": "unavailable"}},
		"refused from memory":        {cricket.Posts, post, post, true, 429, `"create_post";q=10;w=60`, `"create_post";r=1;t=43`, fields{"reason": "unavailable"}},
		"a bucket's burst":           {cricket.Chat, "", `"activity": "send_message", "tier": "burst"`, false, 200, `"send_message";q=3;w=15`, `"send_message";r=2;t=5`, nil},
		"the length of this day":     {calendar, "", `"activity": "call"`, false, 200, `"call";q=9;w=82800`, `"call";r=8;t=36000`, nil},
		"several limits":             {several, "", `"activity": "a", "count": 9`, false, 200, `"minute";q=10;w=60, "day";q=200;w=86400`, `"minute";r=1;t=43, "day";r=191;t=6343`, nil},
		"several limits that refuse": {several, `"activity": "a", "count": 9`, `"activity": "a", "count": 9`, false, 429, `"minute";q=10;w=60, "day";q=200;w=86400`, `"minute";r=1;t=43, "day";r=191;t=6343`, fields{"violated-policies": []any{"minute"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Guard, b.now = tt.guard, start.Add(17500*time.Millisecond)
			if name == "the length of this day" {
				b.now = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
			}
			if tt.away {
				b.store.away = errAway
			}
			send := func(members string) (float64, fields, fields) {
				return b.call("POST", base64.StdEncoding.EncodeToString([]byte(`{"userId": "`+canary+`", `+members+`}`)), true)
			}
			if tt.before != "" {
				send(tt.before)
			}
			status, headers, got := send(tt.event)
			want := fields{"Content-Type": "application/json"}
			if tt.policy != "" {
				want["RateLimit-Policy"], want["RateLimit"] = tt.policy, tt.limits
			}
			if tt.status == 429 {
				want["Content-Type"], want["Retry-After"] = "application/problem+json", "43"
			}
			if diff := cmp.Diff(want, headers); status != tt.status || diff != "" {
				t.Errorf("%v %v, want %v, and headers (-want +got):\n%s", status, got, tt.status, diff)
			}
			for field, v := range tt.answer {
				if !cmp.Equal(got[field], v) {
					t.Errorf("%s is %v, want %v", field, got[field], v)
				}
			}
		})
	}
}

// A refusal over HTTP is a 429, even if refusals are errors.
func TestARefusedCheckIsA429(t *testing.T) {
	b := newBench(t)
	b.now = start.Add(17500 * time.Millisecond)
	b.RefusalIsError = true
	b.post(`, "count": 9`)
	status, headers, got := b.post(`, "count": 9`)
	want := fields{
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
}

func TestRetryAfterIsRoundedUpAndAtLeastOneSecond(t *testing.T) {
	b := newBench(t)
	b.post(`, "count": 10`)
	for _, tt := range []struct {
		at   time.Duration
		want string
	}{
		{0, "60"}, {time.Millisecond, "60"}, {time.Second, "59"}, {59 * time.Second, "1"}, {59_999 * time.Millisecond, "1"},
	} {
		b.now = start.Add(tt.at)
		if status, headers, _ := b.post(``); status != 429 || headers["Retry-After"] != tt.want {
			t.Errorf("at %v: %v %v, want 429 and Retry-After %s", tt.at, status, headers, tt.want)
		}
	}
}

func TestErrorsOverHTTPAreProblems(t *testing.T) {
	ask, invalid := `{"userId": "`+canary+`", "activity": "create_post"}`, "ValidationError"
	for name, tt := range map[string]struct {
		method, body string
		encoded      bool
		status       int
		errorType    string
		detail       string
	}{
		"GET":         {"GET", "", false, 405, "", `method is "GET", want POST`},
		"DELETE":      {"DELETE", ask, false, 405, "", `method is "DELETE", want POST`},
		"bad input":   {"POST", `{"activity": "like"}`, false, 400, invalid, "userId is missing or empty, want 1 to 128 printable ASCII characters without a space"},
		"no body":     {"POST", ``, false, 400, invalid, "event is empty, want a JSON object"},
		"a long body": {"POST", strings.Repeat(" ", 70<<10), false, 400, invalid, "event is 71680 bytes long, want at most 65536"},
		"not base64":  {"POST", `{}`, true, 400, invalid, "body is not base64, but isBase64Encoded is true"},
		"outage":      {"POST", ask, false, 503, "Unavailable", "the table does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.DenyOutage, b.RefusalIsError = true, true
			b.store.away = errAway
			want := fields{"status": float64(tt.status), "title": http.StatusText(tt.status), "detail": tt.detail}
			if tt.errorType != "" {
				want["errorType"] = tt.errorType
			}
			wantHeaders := fields{"Content-Type": "application/problem+json"}
			switch tt.status {
			case 405:
				wantHeaders["Allow"] = "POST"
			case 503:
				want["type"] = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
			}
			status, headers, got := b.call(tt.method, tt.body, tt.encoded)
			if diff := cmp.Diff(want, got); diff != "" || status != want["status"] {
				t.Errorf("%v (-want +got):\n%s", status, diff)
			}
			if diff := cmp.Diff(wantHeaders, headers); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
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
		reply := b.answer(event)
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
