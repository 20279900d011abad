package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/dynamotest"
)

// A stream is what a command writes, for a test to read meanwhile.
type stream struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

var serving = regexp.MustCompile(`on (http://[^,]+),`)

// serve runs guards serve on a free port, and returns its URL and what it
// writes. It ends, with status 0, when the test does.
func serve(t *testing.T, args ...string) (endpoint string, log *stream) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	log = new(stream)
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), console{out: io.Discard, err: log, now: atPinned})
	}()
	t.Cleanup(func() {
		interrupt()
		if status := <-ended; status != 0 {
			t.Errorf("guards serve ended with status %d:\n%s", status, log)
		}
	})
	for {
		if match := serving.FindStringSubmatch(log.String()); match != nil {
			return match[1], log
		}
		select {
		case status := <-ended:
			ended <- status
			t.Fatal("guards serve does not serve")
		case <-time.After(time.Millisecond):
		}
	}
}

type response struct {
	*http.Response
	body string
}

func post(t *testing.T, address, body string, headers ...string) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{r, string(raw)}
}

func invocations(endpoint, name string) string {
	return endpoint + "/2015-03-31/functions/" + url.PathEscape(name) + "/invocations"
}

const like = `{"userId": "u1", "activity": "like"}`

// Each fact of the Invoke API that SDKs rely on.
func TestInvokeAPI(t *testing.T) {
	endpoint, log := serve(t)
	for _, name := range []string{
		"posts-guard", "posts-guard:live", "posts-guard:$LATEST", "function:posts-guard", "123456789012:function:posts-guard",
		"arn:aws:lambda:eu-west-1:123456789012:function:posts-guard", "arn:aws:lambda:eu-west-1:123456789012:function:posts-guard:live",
	} {
		r := post(t, invocations(endpoint, name), like)
		if r.StatusCode != 200 || r.Header.Get("X-Amz-Executed-Version") != "$LATEST" || r.Header.Get("X-Amz-Function-Error") != "" ||
			r.Header.Get("X-Amzn-RequestId") == "" || !strings.HasPrefix(r.body, `{"allowed":true,"reason":"unlimited"`) {
			t.Errorf("%s: %s %v %s", name, r.Status, r.Header, r.body)
		}
	}

	r := post(t, invocations(endpoint, "posts-guard"), `{"activity": "like"}`)
	var failure struct{ ErrorType, ErrorMessage string }
	err := json.Unmarshal([]byte(r.body), &failure)
	if err != nil || r.StatusCode != 200 || r.Header.Get("X-Amz-Function-Error") != "Unhandled" || failure.ErrorType != "ValidationError" || !strings.HasPrefix(failure.ErrorMessage, "userId is missing") {
		t.Errorf("a function error: %s %v %s", r.Status, r.Header, r.body)
	}
	r = post(t, invocations(endpoint, "posts-guard"), "")
	if r.StatusCode != 200 || !strings.Contains(r.body, "userId is missing") {
		t.Errorf("an empty body is not {}: %s %s", r.Status, r.body)
	}

	for _, tt := range []struct {
		what, name, body string
		headers          []string
		status           int
		kind, message    string
	}{
		{"unknown function", "pots-guard", like, nil, 404, "ResourceNotFoundException", "Function not found: arn:aws:lambda:us-east-1:123456789012:function:pots-guard"},
		{"no name", "a b", like, nil, 400, "InvalidParameterValueException", "not a function's name, name:alias or ARN"},
		{"no JSON", "posts-guard", "{", nil, 400, "InvalidRequestContentException", "Could not parse request body into json"},
		{"too large", "posts-guard", strings.Repeat(" ", 6<<20+1), nil, 413, "RequestTooLargeException", "payload is too large"},
		{"unknown type", "posts-guard", like, []string{"X-Amz-Invocation-Type", "Later"}, 400, "InvalidParameterValueException", `"Later"`},
	} {
		r := post(t, invocations(endpoint, tt.name), tt.body, tt.headers...)
		var body struct{ Type, Message string }
		if err := json.Unmarshal([]byte(r.body), &body); err != nil || r.StatusCode != tt.status ||
			r.Header.Get("X-Amzn-Errortype") != tt.kind || body.Type != "User" || !strings.Contains(body.Message, tt.message) {
			t.Errorf("%s: %s %v %.200s", tt.what, r.Status, r.Header, r.body)
		}
	}

	r = post(t, invocations(endpoint, "posts-guard"), like, "X-Amz-Invocation-Type", "DryRun")
	if r.StatusCode != 204 || r.body != "" {
		t.Errorf("DryRun: %s %s", r.Status, r.body)
	}
	if !strings.Contains(log.String(), "check like: allowed, unlimited\n") {
		t.Errorf("no line that a person can follow:\n%s", log)
	}
}

func TestInvokeEventAndTail(t *testing.T) {
	endpoint, _ := serve(t)
	ten := `{"userId": "canary-user-4711", "activity": "create_post", "count": 10}`
	r := post(t, invocations(endpoint, "posts-guard"), ten, "X-Amz-Invocation-Type", "Event")
	if r.StatusCode != 202 || r.body != "" {
		t.Errorf("Event: %s %s", r.Status, r.body)
	}
	status := strings.Replace(ten, `"count": 10`, `"op": "status"`, 1)
	for !strings.Contains(r.body, `"activityCount":10`) { // it takes place some time
		r = post(t, invocations(endpoint, "posts-guard"), status)
	}
	r = post(t, invocations(endpoint, "posts-guard"), ten, "X-Amz-Log-Type", "Tail")
	tail, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Amz-Log-Result"))
	if err != nil || len(tail) > 4096 || !strings.Contains(string(tail), `"msg":"refused"`) || strings.Contains(string(tail), "canary") ||
		!strings.HasPrefix(string(tail), "START RequestId: "+r.Header.Get("X-Amzn-RequestId")) || !strings.Contains(string(tail), "REPORT RequestId: ") {
		t.Errorf("the tail of the log, %v:\n%s", err, tail)
	}
}

// A connection that a client holds for later doesn't keep serve from ending.
func TestServerLeavesNoConnectionOpen(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.NotFoundHandler())
	server.ReadHeaderTimeout = 0 // which would close it, too, only later
	go func() { _ = server.Serve(listener) }()
	unused, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unused.Close() }()
	post(t, "http://"+listener.Addr().String(), "") // on a connection that it accepted after the other
	now, cancel := context.WithCancel(t.Context())
	cancel()
	_ = server.Shutdown(now)
	_ = unused.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := unused.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is still open: %v", err)
	}
}

// A guard answers POST /NAME as its Function URL would.
func TestServeForm(t *testing.T) {
	endpoint, _ := serve(t)
	ten := `{"userId": "u1", "activity": "create_post", "count": 10}`
	r := post(t, endpoint+"/posts-guard", ten)
	if r.StatusCode != 200 || r.Header.Get("RateLimit-Policy") != `"create_post";q=10;w=60` || !strings.Contains(r.body, `"granted":10`) {
		t.Errorf("%s %v %s", r.Status, r.Header, r.body)
	}
	r = post(t, endpoint+"/posts-guard", ten)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s %v %s", r.Status, r.Header, r.body)
	}
	r = post(t, endpoint+"/posts-guard", "{\"userId\": \"u\xff\", \"activity\": \"like\"}")
	if r.StatusCode != 400 || !strings.Contains(r.body, "userId is not UTF-8") {
		t.Errorf("%s %s", r.Status, r.body)
	}
	for _, name := range []string{"cleanup", "pots-guard"} {
		if r := post(t, endpoint+"/"+name, `{}`); r.StatusCode != 404 {
			t.Errorf("POST /%s: %s %s", name, r.Status, r.body)
		}
	}
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/posts-guard", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(get)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 405 {
		t.Errorf("GET: %s", answer.Status)
	}
}

func TestExactlyTheLimitThroughServe(t *testing.T) {
	t.Setenv("DECISION_TIMEOUT", "5s") // the longest, for a slow machine
	t.Setenv("ON_OUTAGE", "deny")      // an instance that decides alone would count anew
	stores := map[string][]string{"memory": nil}
	if os.Getenv("DYNAMODB_ENDPOINT") != "" {
		t.Setenv("AWS_ACCESS_KEY_ID", "test")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
		stores["dynamodb"] = []string{
			"--store", "dynamodb", "--endpoint", dynamotest.Endpoint(t), "--region", "us-east-1",
			"--table", dynamotest.Table(t), "--create-table", // there already: left as it is
		}
	}
	for name, args := range stores {
		t.Run(name, func(t *testing.T) {
			endpoint, _ := serve(t, args...)
			const calls, atOnce = 200, 16
			next := make(chan string, calls)
			for i := range calls {
				next <- fmt.Sprintf(`{"userId": "u1", "activity": "add_comment", "requestId": "r%d"}`, i)
			}
			close(next)
			var mu sync.Mutex
			allowed := 0
			var wg sync.WaitGroup
			for range atOnce {
				wg.Go(func() {
					for request := range next {
						r := post(t, invocations(endpoint, "comments-guard"), request)
						for strings.Contains(r.body, `"errorType":"Unavailable"`) { // too slow even for that: asked again
							r = post(t, invocations(endpoint, "comments-guard"), request)
						}
						mu.Lock()
						if strings.HasPrefix(r.body, `{"allowed":true`) {
							allowed++
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if allowed != 60 {
				t.Errorf("%d of %d calls allowed, want 60", allowed, calls)
			}
		})
	}
}

// What the deployed functions read serve reads, too.
func TestServeReadsTheFunctionsVariables(t *testing.T) {
	ask := func(endpoint, more string) response {
		return post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"`+more+`}`)
	}
	for setting, want := range map[string]string{ // to the eleventh
		"MODE=enforce":      `{"allowed":false,"reason":"limited",`,
		"MODE=shadow":       `{"allowed":true,"reason":"shadow",`,
		"MODE=off":          `{"allowed":true,"reason":"unlimited",`,
		"ON_LIMIT=error":    `{"errorMessage":"Rate limit exceeded: Too many requests in a short period","errorType":"RateLimitExceeded"}`,
		"BYPASS_ROLES=boss": `{"allowed":false,"reason":"limited",`,
	} {
		t.Run(setting, func(t *testing.T) {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value)
			endpoint, log := serve(t)
			ask(endpoint, `, "count": 10`)
			if r := ask(endpoint, ""); !strings.HasPrefix(r.body, want) {
				t.Errorf("%s, want %s", r.body, want)
			}
			boss := `"reason":"bypassed"`
			if r := ask(endpoint, `, "roles": ["boss"]`); strings.Contains(r.body, boss) != (value == "boss") {
				t.Errorf("the role boss: %s", r.body)
			}
			if !strings.Contains(log.String(), ", counting in memory, "+setting+"; Ctrl-C ends it\n") {
				t.Errorf("serve does not say that %s is set:\n%s", setting, log)
			}
		})
	}
}

// A table that goes away while it is served, as ON_OUTAGE has it.
func TestServeInAnOutage(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("DECISION_TIMEOUT", "5s")
	table := dynamotest.Table(t)
	for onOutage, want := range map[string]string{
		"allow": `{"allowed":true,"reason":"unavailable",`,
		"deny":  `{"errorMessage":"access to the table is denied","errorType":"Unavailable"}`,
	} {
		t.Run(onOutage, func(t *testing.T) {
			t.Setenv("ON_OUTAGE", onOutage)
			p := dynamotest.NewProxy(t)
			endpoint, _ := serve(t, "--store", "dynamodb", "--endpoint", p.URL(), "--region", "us-east-1", "--table", table)
			p.Fail(math.MaxInt, dynamotest.AccessDenied)
			if r := post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`); !strings.HasPrefix(r.body, want) {
				t.Errorf("%s, want %s", r.body, want)
			}
		})
	}
}

func TestTimeoutsAreTheTemplates(t *testing.T) {
	type timeout struct {
		Timeout int `yaml:"Timeout"` // seconds
	}
	var template struct {
		Globals struct {
			Function timeout `yaml:"Function"`
		} `yaml:"Globals"`
		Resources struct {
			Cleanup struct {
				Properties timeout `yaml:"Properties"`
			} `yaml:"CleanupFunction"`
		} `yaml:"Resources"`
	}
	content, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &template); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		got  time.Duration
		want timeout
	}{
		"guards":  {guardTimeout, template.Globals.Function},
		"cleanup": {cleanupTimeout, template.Resources.Cleanup.Properties},
	} {
		if want := time.Duration(tt.want.Timeout) * time.Second; tt.got != want {
			t.Errorf("serve gives %s %v, template.yaml %v", name, tt.got, want)
		}
	}
}

func TestServeCleanup(t *testing.T) {
	endpoint, _ := serve(t)
	post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`)
	for payload, want := range map[string]string{
		`{}`:               `{"scanned":1,"stale":0,"deleted":0,"users":1,"finished":true,`,
		`{"userId": "u2"}`: `{"scanned":0,"stale":0,"deleted":0,"users":0,"finished":true,`,
	} {
		if r := post(t, invocations(endpoint, "cleanup"), payload); !strings.HasPrefix(r.body, want) {
			t.Errorf("%s: %s, want %s", payload, r.body, want)
		}
	}
	if r := post(t, invocations(endpoint, "cleanup"), `{"userId": "u1"}`); !strings.HasPrefix(r.body, `{"scanned":1,"stale":1,"deleted":1,"users":1,`) {
		t.Error(r.body)
	}
}

// What can't be served says so in a sentence, and how badly in the status.
func TestServeThatCant(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for says, tt := range map[string]struct {
		status int
		args   []string
	}{
		"address already in use":                       {wrongUse, []string{"--addr", taken.Addr().String()}},
		"--create-table goes with --store dynamodb":    {wrongUse, []string{"--create-table"}},
		"guards: the table did not answer in time\n":   {unreachable, []string{"--store", "dynamodb", "--region", "r", "--endpoint", "http://127.0.0.1:1"}},
		"--endpoint and --region go with --store dyna": {wrongUse, []string{"--endpoint", "http://127.0.0.1:1"}},
	} {
		var log stream
		if status := run(t.Context(), append([]string{"serve"}, tt.args...), console{out: io.Discard, err: &log, now: atPinned}); status != tt.status || !strings.Contains(log.String(), says) {
			t.Errorf("guards serve %v: status %d, %s, want %d and %s", tt.args, status, &log, tt.status, says)
		}
	}
	if os.Getenv("DYNAMODB_ENDPOINT") != "" {
		var log stream
		status := run(t.Context(), []string{"serve", "--store", "dynamodb", "--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", "no-such-table"}, console{out: io.Discard, err: &log, now: atPinned})
		if status != unreachable || !strings.Contains(log.String(), "guards: the table no-such-table does not exist at ") {
			t.Errorf("a missing table: status %d, %s", status, &log)
		}
	}
}
