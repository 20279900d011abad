package guard_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/limits"
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

// post asks about create_post with further members of the event.
func (b *bench) post(members string) (status float64, headers, answer fields) {
	b.t.Helper()
	return b.call("POST", `{"userId": "`+canary+`", "activity": "create_post"`+members+`}`, false)
}

func TestAnAllowedCheckIsA200(t *testing.T) {
	b := newBench(t)
	b.now = start.Add(17500 * time.Millisecond)
	const event = `{"userId": "` + canary + `", "activity": "create_post", "count": 9}`
	status, headers, got := b.call("POST", base64.StdEncoding.EncodeToString([]byte(event)), true)
	if status != 200 || got["allowed"] != true || got["granted"] != 9.0 {
		t.Errorf("%v %v, want 200 and 9 granted", status, got)
	}
	want := fields{"Content-Type": "application/json", "RateLimit-Policy": `"create_post";q=10;w=60`, "RateLimit": `"create_post";r=1;t=43`}
	if diff := cmp.Diff(want, headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

// A Function URL and API Gateway send events of the same form, version 2.0. Each
// event here has all that it can have.
func TestAGuardAcceptsEventsOfFunctionURLsAndAPIGateway(t *testing.T) {
	const ask = `{"userId": "` + canary + `", "activity": "create_post"}`
	headers, claims := map[string]string{"content-type": "application/json"}, map[string]string{"sub": "u2"}
	byURL := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: "/", RawQueryString: "userId=u2", Cookies: []string{"a=b"}, Headers: headers, Body: ask,
		QueryStringParameters: map[string]string{"userId": "u2"},
		RequestContext: events.LambdaFunctionURLRequestContext{
			AccountID: "1", APIID: "url-id", DomainName: "url-id.lambda-url.us-east-1.on.aws", Time: "14/Nov/2023:22:14:00 +0000",
			Authorizer: &events.LambdaFunctionURLRequestContextAuthorizerDescription{IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{AccessKey: "AKIDTEST"}},
			HTTP:       events.LambdaFunctionURLRequestContextHTTPDescription{Method: "POST", Path: "/", SourceIP: "192.0.2.1"},
		},
	}
	byGateway := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /guard", RawPath: "/guard", RawQueryString: "userId=u2", Cookies: []string{"a=b"}, Headers: headers, Body: ask,
		QueryStringParameters: map[string]string{"userId": "u2"}, PathParameters: map[string]string{"a": "b"}, StageVariables: map[string]string{"a": "b"},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "POST /guard", AccountID: "1", Stage: "$default", APIID: "api-id", TimeEpoch: 1_700_000_040_000,
			Authorizer: &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims}},
			HTTP:       events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: "POST", Path: "/guard", SourceIP: "192.0.2.1"},
		},
	}
	for name, event := range map[string]any{"Function URL": byURL, "API Gateway": byGateway} {
		b := newBench(t)
		raw, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		out, err := b.Invoke(t.Context(), raw)
		if err != nil {
			t.Fatal(name, err)
		}
		reply := parse(t, out)
		if got := parse(t, []byte(reply["body"].(string))); reply["statusCode"] != 200.0 || got["userId"] != canary || got["activityCount"] != 1.0 {
			t.Errorf("%s: %v, want 200 and one counted", name, reply)
		}
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

func TestAStatusIsA200EvenIfACheckWouldBeRefused(t *testing.T) {
	b := newBench(t)
	b.RefusalIsError = true
	b.post(`, "count": 9`)
	status, headers, got := b.post(`, "count": 9, "op": "status"`)
	if status != 200 || got["allowed"] != false || headers["Content-Type"] != "application/json" || headers["Retry-After"] != nil {
		t.Errorf("%v %v %v, want 200 and not allowed", status, headers, got)
	}
}

func TestAPartialGrantIsA200(t *testing.T) {
	b := newBench(t)
	b.post(`, "count": 9`)
	status, _, got := b.post(`, "count": 9, "partial": true`)
	if status != 200 || got["granted"] != 1.0 || got["message"] != message {
		t.Errorf("%v %v, want 200 and 1 granted", status, got)
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

func TestAnExemptCallerGetsNoRateLimitHeaders(t *testing.T) {
	b := newBench(t)
	for event, reason := range map[string]string{
		`{"userId": "` + canary + `", "activity": "like"}`:                            "unlimited",
		`{"userId": "` + canary + `", "activity": "create_post", "roles": ["admin"]}`: "bypassed",
	} {
		status, headers, got := b.call("POST", event, false)
		if diff := cmp.Diff(fields{"Content-Type": "application/json"}, headers); status != 200 || got["reason"] != reason || diff != "" {
			t.Errorf("%s: %v %v, headers (-want +got):\n%s", event, status, got, diff)
		}
	}
}

// During an outage, memory's answers have the same status codes and headers.
func TestAnAnswerFromMemoryHasHeaders(t *testing.T) {
	b := newBench(t)
	b.store.away = errAway
	for _, tt := range []struct {
		status float64
		left   string
	}{{200, `"create_post";r=0;t=60`}, {429, `"create_post";r=0;t=60`}} {
		status, headers, got := b.post(`, "count": 10`)
		if status != tt.status || headers["RateLimit"] != tt.left || got["reason"] != "unavailable" {
			t.Errorf("%v %v %v, want %v and %s", status, headers, got, tt.status, tt.left)
		}
	}
}

// For a bucket, q is its burst and w the seconds to fill it.
func TestHeadersOfABucket(t *testing.T) {
	b := newBench(t)
	b.Guard = limits.Chat
	_, headers, _ := b.call("POST", `{"userId": "`+canary+`", "activity": "send_message", "tier": "burst"}`, false)
	if headers["RateLimit-Policy"] != `"send_message";q=3;w=15` || headers["RateLimit"] != `"send_message";r=2;t=5` {
		t.Errorf("headers: %v", headers)
	}
}

func TestHeadersOfSeveralLimitsHaveOneItemEach(t *testing.T) {
	b := newBench(t)
	b.Guard = several
	event := `{"userId": "` + canary + `", "activity": "a", "count": 9}`
	_, headers, _ := b.call("POST", event, false)
	if headers["RateLimit-Policy"] != `"minute";q=10;w=60, "day";q=200;w=86400` || headers["RateLimit"] != `"minute";r=1;t=60, "day";r=191;t=6360` {
		t.Errorf("headers: %v", headers)
	}
	status, headers, got := b.call("POST", event, false)
	if diff := cmp.Diff([]any{"minute"}, got["violated-policies"]); status != 429 || headers["Retry-After"] != "60" || diff != "" {
		t.Errorf("%v %v, violated policies (-want +got):\n%s", status, headers, diff)
	}
}
