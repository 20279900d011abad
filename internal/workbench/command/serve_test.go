package command

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	app "github.com/cric-talk/guards/limits"
)

func TestServeReportsWhyItCannotStart(t *testing.T) {
	credentials(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // otherwise a serve that does start never ends
	defer stop()
	taken := testkit.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	missing := []string{"--store", "dynamodb", "--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", "no-such-table"}
	for message, tt := range map[string]struct {
		status int
		args   []string
	}{
		"address already in use":                             {wrongUse, []string{"--addr", taken.Addr().String()}},
		"guards: http://127.0.0.1:1 can't be reached: ":      {unreachable, []string{"--store", "dynamodb", "--region", "r", "--endpoint", "http://127.0.0.1:1"}},
		"guards: the table no-such-table does not exist at ": {unreachable, missing},
	} {
		var log stream
		if status := run(ctx, append([]string{"serve"}, tt.args...), session{page: app.All, out: io.Discard, err: &log, now: atPinned}); status != tt.status || !strings.Contains(log.String(), message) {
			t.Errorf("guards serve %v: status %d, %s, want %d and %s", tt.args, status, &log, tt.status, message)
		}
	}
}

func TestServeCreatesTheTable(t *testing.T) {
	credentials(t)
	t.Setenv("DECISION_TIMEOUT", "5s") // a busy machine takes more than a second
	endpoint, _ := serve(t, "--store", "dynamodb", "--endpoint", dynamotest.Endpoint(t), "--region", "us-east-1",
		"--table", dynamotest.Table(t), "--create-table") // the table exists already
	post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`).Wants(t, 200, `{"allowed":true,"reason":"ok",`)
}

// serve reads the variables that the deployed functions read.
func TestServeReadsTheFunctionsVariables(t *testing.T) {
	ask := func(endpoint, more string) testkit.Response {
		return post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"`+more+`}`)
	}
	for setting, want := range map[string]string{ // the answer to the eleventh request
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
			ask(endpoint, "").Wants(t, 200, want)
			if r := ask(endpoint, `, "roles": ["boss"]`); strings.Contains(r.Text, `"reason":"bypassed"`) != (value == "boss") {
				t.Errorf("the role boss: %s", r.Text)
			}
			testkit.Contains(t, "the log", log.String(), ", counting in memory, "+setting+"; press Ctrl-C to stop\n")
		})
	}
}

func TestServeCleanup(t *testing.T) {
	endpoint, _ := serve(t)
	post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`)
	post(t, invocations(endpoint, "cleanup"), `{}`).Wants(t, 200, `{"scanned":1,"stale":0,"deleted":0,"users":1,"finished":true,`)
	post(t, invocations(endpoint, "cleanup"), `{"userId": "u1"}`).Wants(t, 200, `{"scanned":1,"stale":1,"deleted":1,"users":1,"finished":true,`)
}

// The log names the limit or the subject that refused, without its id.
func TestTheLogNamesWhatRefuses(t *testing.T) {
	endpoint, log := serveGuards(t, rooms, atPinned)
	for _, user := range []string{"u1", "u2"} {
		post(t, invocations(endpoint, "rooms-guard"), `{"userId": "`+user+`", "activity": "write", "count": 3, "subjects": {"room": "r42"}}`)
	}
	testkit.Contains(t, "the log", log.String(), "check write: allowed, ok, 3/3 used", "check write: refused, limited, 3/4 used of room, wait ")
	if strings.Contains(log.String(), "r42") {
		t.Errorf("the log names a room:\n%s", log)
	}
}

// An app's test moves the clock of guards serve, and the guards count in the next window.
func TestServeMovesTheClockForTests(t *testing.T) {
	endpoint, _ := serve(t, "--clock")
	const ten = `{"userId": "u1", "activity": "create_post", "count": 10}`
	post(t, invocations(endpoint, "posts-guard"), ten).Wants(t, 200, `"allowed":true`)
	post(t, invocations(endpoint, "posts-guard"), ten).Wants(t, 200, `"allowed":false`)
	get(t, endpoint+"/clock").Wants(t, 200, `"now":`, `"ahead":""`)
	post(t, endpoint+"/clock", `{"move": 86400000}`, "Content-Type", "application/json").Wants(t, 200, `"ahead":"24 h 0 min"`)
	post(t, invocations(endpoint, "posts-guard"), ten).Wants(t, 200, `"allowed":true`)
	post(t, endpoint+"/clock", `{"reset": true}`, "Content-Type", "application/json").Wants(t, 200, `"ahead":""`)
}

// Nobody but a program on this machine moves the clock, and nobody at all without --clock.
func TestTheClockIsForTestsOnly(t *testing.T) {
	endpoint, _ := serve(t, "--clock")
	clock, json := endpoint+"/clock", []string{"Content-Type", "application/json"}
	post(t, clock, `{"move": 1}`, append(json, "Origin", "https://example.com")...).Wants(t, 403) // a page of another site
	post(t, clock, `{"move": 1}`, append(json, "Origin", endpoint)...).Wants(t, 403)              // the console's own page
	post(t, clock, `{"move": 1}`, append(json, "Sec-Fetch-Site", "none")...).Wants(t, 403)        // a page without an Origin
	post(t, clock, `{"move": 1}`, "Content-Type", "text/plain").Wants(t, 415)                     // a form
	post(t, clock, `{"move": -1}`, json...).Wants(t, 400)
	post(t, clock, `{`, json...).Wants(t, 400)
	without, _ := serve(t)
	post(t, without+"/clock", `{"move": 1}`, json...).Wants(t, 404)
}

// A request with Guards-Token is answered as an agent answers it, and counts with all others.
// One without it is answered as before.
func TestServeAnswersAsAnAgent(t *testing.T) {
	endpoint, log := serve(t)
	const event = `{"userId": "u1", "activity": "create_post", "count": 5}`
	headers := []string{"Guards-Token", "local", "Content-Type", "application/json"}
	for _, tt := range []struct {
		path    string
		headers []string
		status  int
		agent   string // the answer's Guards-Agent
		header  string // which else the answer has
	}{
		{"/posts-guard", headers, 200, "1", "RateLimit"},
		{"/", headers, 200, "1", "RateLimit"},
		{"/posts-guard", headers, 429, "1", "Retry-After"}, // the eleventh
		{"/posts-guard", nil, 429, "", "Retry-After"},      // as a Function URL
		{"/posts-guard", []string{"Guards-Token", "other"}, 403, "1", "Content-Type"},
		{"/posts-guard", append(headers, "Origin", endpoint), 403, "1", "Content-Type"},
	} {
		r := post(t, endpoint+tt.path, event, tt.headers...)
		if r.StatusCode != tt.status || r.Header.Get("Guards-Agent") != tt.agent || r.Header.Get(tt.header) == "" {
			t.Errorf("POST %s, %q: %v, want %+v", tt.path, tt.headers, r, tt)
		}
	}
	get(t, endpoint+"/posts-guard").Wants(t, 405)
	if n := strings.Count(log.String(), "create_post"); n != 4 {
		t.Errorf("%d lines about the requests, want 4:\n%s", n, log)
	}
}

// Serve accepts the same token as an agent.
func TestServeHasTheTokenOfAnAgent(t *testing.T) {
	t.Setenv("GUARDS_AGENT_TOKEN", "secret-1")
	endpoint, log := serve(t)
	for token, want := range map[string]int{"secret-1": 200, "local": 403} {
		post(t, endpoint+"/posts-guard", like, "Guards-Token", token, "Content-Type", "application/json").Wants(t, want)
	}
	if strings.Contains(log.String(), "secret-1") {
		t.Errorf("the log has the token:\n%s", log)
	}
}
