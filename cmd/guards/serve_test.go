package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

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
		ended <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), console{out: io.Discard, err: log})
	}()
	t.Cleanup(func() {
		interrupt()
		if status := <-ended; status != 0 {
			t.Errorf("guards serve ended with status %d:\n%s", status, log)
		}
	})
	for range 1000 {
		if match := serving.FindStringSubmatch(log.String()); match != nil {
			return match[1], log
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("guards serve does not serve:\n%s", log)
	return "", nil
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
	for range 500 { // it takes place some time
		r = post(t, invocations(endpoint, "posts-guard"), ten, "X-Amz-Log-Type", "Tail")
		if strings.Contains(r.body, `"limited"`) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	tail, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Amz-Log-Result"))
	if err != nil || len(tail) > 4096 || !strings.Contains(string(tail), `"msg":"refused"`) || strings.Contains(string(tail), "canary") ||
		!strings.HasPrefix(string(tail), "START RequestId: "+r.Header.Get("X-Amzn-RequestId")) || !strings.Contains(string(tail), "REPORT RequestId: ") {
		t.Errorf("the tail of the log, %v:\n%s", err, tail)
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
			if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); left < 5*time.Second {
				time.Sleep(left) // all in one minute
			}
			const calls, atOnce = 500, 16
			next := make(chan struct{}, calls)
			for range calls {
				next <- struct{}{}
			}
			close(next)
			var mu sync.Mutex
			allowed := 0
			var wg sync.WaitGroup
			for range atOnce {
				wg.Go(func() {
					for range next {
						r := post(t, invocations(endpoint, "comments-guard"), `{"userId": "u1", "activity": "add_comment"}`)
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
		if status := run(t.Context(), append([]string{"serve"}, tt.args...), console{out: io.Discard, err: &log}); status != tt.status || !strings.Contains(log.String(), says) {
			t.Errorf("guards serve %v: status %d, %s, want %d and %s", tt.args, status, &log, tt.status, says)
		}
	}
	if os.Getenv("DYNAMODB_ENDPOINT") != "" {
		var log stream
		status := run(t.Context(), []string{"serve", "--store", "dynamodb", "--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", "no-such-table"}, console{out: io.Discard, err: &log})
		if status != unreachable || !strings.Contains(log.String(), "guards: the table does not exist") {
			t.Errorf("a missing table: status %d, %s", status, &log)
		}
	}
}
