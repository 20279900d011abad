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
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	if r := post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`); !strings.HasPrefix(r.Text, `{"allowed":true,"reason":"ok",`) {
		t.Error(r.Text)
	}
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
			if r := ask(endpoint, ""); !strings.HasPrefix(r.Text, want) {
				t.Errorf("%s, want %s", r.Text, want)
			}
			if r := ask(endpoint, `, "roles": ["boss"]`); strings.Contains(r.Text, `"reason":"bypassed"`) != (value == "boss") {
				t.Errorf("the role boss: %s", r.Text)
			}
			if !strings.Contains(log.String(), ", counting in memory, "+setting+"; press Ctrl-C to stop\n") {
				t.Errorf("serve does not report that %s is set:\n%s", setting, log)
			}
		})
	}
}

func TestServeCleanup(t *testing.T) {
	endpoint, _ := serve(t)
	post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`)
	for _, tt := range [][2]string{
		{`{}`, `{"scanned":1,"stale":0,"deleted":0,"users":1,"finished":true,`}, {`{"userId": "u1"}`, `{"scanned":1,"stale":1,"deleted":1,"users":1,"finished":true,`},
	} {
		if r := post(t, invocations(endpoint, "cleanup"), tt[0]); !strings.HasPrefix(r.Text, tt[1]) {
			t.Errorf("%s: %s, want %s", tt[0], r.Text, tt[1])
		}
	}
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
	count := func() string {
		return post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post", "count": 10}`).Text
	}
	if first, second := count(), count(); !strings.Contains(first, `"allowed":true`) || !strings.Contains(second, `"allowed":false`) {
		t.Fatalf("%s %s", first, second)
	}
	before := get(t, endpoint+"/clock")
	if before.StatusCode != 200 || !strings.Contains(before.Text, `"now":`) || !strings.Contains(before.Text, `"ahead":""`) {
		t.Errorf("%s %s", before.Status, before.Text)
	}
	json := []string{"Content-Type", "application/json"}
	if r := post(t, endpoint+"/clock", `{"move": 86400000}`, json...); r.StatusCode != 200 || !strings.Contains(r.Text, `"ahead":"24 h 0 min"`) {
		t.Errorf("%s %s", r.Status, r.Text)
	}
	if tomorrow := count(); !strings.Contains(tomorrow, `"allowed":true`) {
		t.Errorf("tomorrow: %s", tomorrow)
	}
	if r := post(t, endpoint+"/clock", `{"reset": true}`, json...); r.StatusCode != 200 || !strings.Contains(r.Text, `"ahead":""`) {
		t.Errorf("%s %s", r.Status, r.Text)
	}
}

// Nobody but a program on this machine moves the clock, and nobody at all without --clock.
func TestTheClockIsForTestsOnly(t *testing.T) {
	endpoint, _ := serve(t, "--clock")
	for _, tt := range []struct {
		name    string
		headers []string
		body    string
		want    int
	}{
		{"a page of another site", []string{"Content-Type", "application/json", "Origin", "https://example.com"}, `{"move": 1}`, 403},
		{"the console's own page", []string{"Content-Type", "application/json", "Origin", endpoint}, `{"move": 1}`, 403},
		{"a page without an Origin", []string{"Content-Type", "application/json", "Sec-Fetch-Site", "none"}, `{"move": 1}`, 403},
		{"a form", []string{"Content-Type", "text/plain"}, `{"move": 1}`, 415},
		{"back", []string{"Content-Type", "application/json"}, `{"move": -1}`, 400},
		{"too far", []string{"Content-Type", "application/json"}, `{"move": 31708800000}`, 400},
		{"no JSON", []string{"Content-Type", "application/json"}, `{`, 400},
	} {
		if r := post(t, endpoint+"/clock", tt.body, tt.headers...); r.StatusCode != tt.want {
			t.Errorf("%s: %s %s, want %d", tt.name, r.Status, r.Text, tt.want)
		}
	}
	without, _ := serve(t)
	if r := post(t, without+"/clock", `{"move": 1}`, "Content-Type", "application/json"); r.StatusCode != 404 {
		t.Errorf("without --clock: %s %s", r.Status, r.Text)
	}
}

// A request with Guards-Token is answered as an agent answers it, and counts with all others.
// One without it is answered as before.
func TestServeAnswersAsAnAgent(t *testing.T) {
	endpoint, log := serve(t)
	const event = `{"userId": "u1", "activity": "create_post", "count": 5}`
	headers := []string{"Guards-Token", "local", "Content-Type", "application/json"}
	for n, address := range []string{endpoint + "/posts-guard", endpoint + "/"} {
		r := post(t, address, event, headers...)
		if r.StatusCode != 200 || r.Header.Get("Guards-Agent") != "1" || r.Header.Get("RateLimit") == "" || !strings.HasPrefix(r.Text, `{"allowed":true,"reason":"ok"`) {
			t.Errorf("%d: %s %v %s", n, r.Status, r.Header, r.Text)
		}
	}
	if r := post(t, endpoint+"/posts-guard", event, headers...); r.StatusCode != 429 || r.Header.Get("Guards-Agent") != "1" || r.Header.Get("Retry-After") == "" {
		t.Errorf("the eleventh: %s %v %s", r.Status, r.Header, r.Text)
	}
	if r := post(t, endpoint+"/posts-guard", event); r.StatusCode != 429 || r.Header.Get("Guards-Agent") != "" {
		t.Errorf("without a token: %s %v %s", r.Status, r.Header, r.Text)
	}
	for _, wrong := range [][]string{{"Guards-Token", "other"}, append(headers, "Origin", endpoint)} {
		if r := post(t, endpoint+"/posts-guard", event, wrong...); r.StatusCode != 403 || r.Header.Get("Guards-Agent") != "1" {
			t.Errorf("%v: %s %s", wrong, r.Status, r.Text)
		}
	}
	if n := strings.Count(log.String(), "create_post"); n != 4 {
		t.Errorf("%d lines about the requests, want 4:\n%s", n, log)
	}
}

// Serve accepts the same token as an agent.
func TestServeHasTheTokenOfAnAgent(t *testing.T) {
	t.Setenv("GUARDS_AGENT_TOKEN", "secret-1")
	endpoint, log := serve(t)
	for token, want := range map[string]int{"secret-1": 200, "local": 403} {
		if r := post(t, endpoint+"/posts-guard", like, "Guards-Token", token, "Content-Type", "application/json"); r.StatusCode != want {
			t.Errorf("%s: %s %s", token, r.Status, r.Text)
		}
	}
	if strings.Contains(log.String(), "secret-1") {
		t.Errorf("the log has the token:\n%s", log)
	}
}
