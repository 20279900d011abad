package command

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
	app "github.com/cric-talk/guards/limits"
)

// With --fail, the guards decide as in a real outage: from memory, or with
// ON_OUTAGE=deny not at all.
func TestServeFails(t *testing.T) {
	const six = `{"userId": "u1", "activity": "create_post", "count": 6}`
	t.Setenv("DECISION_TIMEOUT", "100ms")
	for how, cause := range map[string]string{
		"unavailable": "the table did not answer in time", "throttled": "the table is throttled", "slow": "the table did not answer in time",
	} {
		t.Run(how, func(t *testing.T) {
			endpoint, log := serve(t, "--fail", how)
			for _, want := range []string{`{"allowed":true,"reason":"unavailable"`, `{"allowed":false,"reason":"unavailable"`} {
				post(t, invocations(endpoint, "posts-guard"), six).Wants(t, 200, want)
			}
			testkit.Contains(t, "the log", log.String(), "counting in a table that is "+how+", because of --fail",
				"22:14:18  posts-guard         check create_post: allowed, unavailable, 6/10 used\n",
				"22:14:18  posts-guard         check create_post: refused, unavailable, 6/10 used, wait 42 s\n")
		})
		t.Run(how+" and deny", func(t *testing.T) {
			t.Setenv("ON_OUTAGE", "deny")
			testkit.Retry(t, func(t testing.TB) { // on a busy machine, 100 ms can pass before the first answer
				endpoint, log := serve(t, "--fail", how)
				post(t, invocations(endpoint, "posts-guard"), six).Wants(t, 200, `"errorType":"Unavailable"`, cause)
				post(t, endpoint+"/posts-guard", six).Wants(t, 503)
				testkit.Contains(t, "the log", log.String(), "  posts-guard         error "+cause, "  posts-guard         error 503 ")
			})
		})
	}
}

// A mistake over HTTP has a line as readable as an invocation's.
func TestServeLogsHTTPErrors(t *testing.T) {
	endpoint, log := serve(t)
	list := func(names ...string) string {
		slices.Sort(names)
		return "; the functions are " + strings.Join(names, ", ")
	}
	withURL, functions := list(guardNames()...), list(append(guardNames(), "cleanup")...)
	for _, tt := range []struct{ path, body, line, answer string }{
		{"/posts-guard", `{"userId": "u1", "activity": "create_post", "teir": "premium"}`, "posts-guard         error 400 event has the unknown field \"teir\", want only userId", "unknown field"},
		{"/posts-guard", `{"userId": "u1", "activity": "create_post"}`, "posts-guard         check create_post: allowed, ok, 1/10 used\n", `"allowed":true`},
		{"/pots-guard", `{}`, "pots-guard          error 404 Function not found: ", withURL},
		{"/cleanup", `{}`, "cleanup             error 404 Function not found: ", withURL},
		{"/2015-03-31/functions/pots-guard/invocations", `{}`, "pots-guard          error 404 Function not found: ", functions},
		{"/2015-03-31/functions/posts-guard/invocations", `{`, "posts-guard         error 400 Could not parse request body into json\n", "Could not parse"},
		{"/2015-03-31/functions", `{}`, "/2015-03-31/functions  error 404 no such path, want POST /2015-03-31/functions/NAME/invocations or POST /NAME", functions},
	} {
		answer := post(t, endpoint+tt.path, tt.body).Text
		testkit.Contains(t, "the answer to "+tt.path, answer, tt.answer)
		testkit.Contains(t, "the log about "+tt.path, log.String(), tt.line)
	}
}

// The log has the times of the console, which are UTC.
func TestServeLogsJSON(t *testing.T) {
	var out stream
	india := func() time.Time { return pinned.In(time.FixedZone("", 19800)) }
	l := serveLog{env: session{page: app.All, out: &out, err: io.Discard, now: india}, json: true}
	for _, i := range []invokeapi.Invocation{
		{Function: "posts-guard", Payload: []byte(`{"allowed":true,"reason":"ok"}`)},
		{Function: "posts-guard", Payload: []byte(`{"statusCode":200,"body":"{\"allowed\":true,\"reason\":\"ok\"}"}`)},
		{Function: "posts-guard", Payload: []byte(`{"statusCode":405,"body":"{\"title\":\"Method Not Allowed\"}"}`)},
		{Function: "cleanup", Err: errors.New("the table is throttled")},
		{Function: "x", Err: errors.New("no such function"), Status: 404},
	} {
		l.observe(i)
	}
	const at = `{"at":"2023-11-14T22:14:18Z","function":`
	want := at + `"posts-guard","answer":{"allowed":true,"reason":"ok"}}
` + at + `"posts-guard","status":200,"answer":{"allowed":true,"reason":"ok"}}
` + at + `"posts-guard","status":405,"error":"Method Not Allowed"}
` + at + `"cleanup","error":"the table is throttled"}
` + at + `"x","status":404,"error":"no such function"}
`
	if out.String() != want || l.served.Load() != 5 {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
}

// A page of another site can make a browser request any path. Its name must not
// control the terminal.
func TestServeLogsNoControlCharacters(t *testing.T) {
	endpoint, log := serve(t)
	for _, path := range []string{"/%1b%5d0%3bowned%07", "/%1b%5b2J%0aguards:%20all%20is%20well", "/a/%1b%5b2J", "/\u009b2J"} {
		post(t, endpoint+path, "{}").Wants(t, 404)
	}
	post(t, invocations(endpoint, "posts-guard"), "{\"userId\": \"u1\", \"activity\": \"\\u001b[2J\"}")
	for line := range strings.Lines(log.String()) {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) || strings.HasPrefix(line, "guards: all") {
			t.Errorf("the log has %q", line)
		}
	}
}
