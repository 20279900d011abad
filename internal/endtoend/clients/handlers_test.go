package clients_test

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// A handlerOutcome is what a platform gets from a handler.
type handlerOutcome struct {
	Result                  json.RawMessage
	ErrorType, ErrorMessage string
}

// A platform turns a request into an event, and what its handler does into a response.
type platform struct {
	event     string // with %s for the user
	otherwise int    // the status of a result without a statusCode
}

// A result without a statusCode is malformed for a REST API. An HTTP API and a Function URL take it for the body of a 200.
var (
	restAPI     = platform{`{"version":"1.0","requestContext":{"authorizer":{"claims":{"sub":"%s"}}}}`, http.StatusBadGateway}
	httpAPI     = platform{`{"version":"2.0","requestContext":{"authorizer":{"jwt":{"claims":{"sub":"%s"}}}}}`, http.StatusOK}
	functionURL = platform{`{"version":"2.0","requestContext":{"authorizer":{"iam":{"userId":"%s"}}}}`, http.StatusOK}
	nextJS      = platform{`{"user":"%s"}`, http.StatusInternalServerError}
)

// answer returns the response to a request.
func (p platform) answer(h handlerOutcome) testkit.Response {
	var result struct {
		StatusCode int
		Headers    map[string]string
		Body       string
	}
	response := respond(http.StatusInternalServerError, h.ErrorType+": "+h.ErrorMessage)
	switch err := json.Unmarshal(h.Result, &result); {
	case h.ErrorType != "":
	case err != nil || result.StatusCode == 0:
		response = respond(p.otherwise, string(h.Result))
	default:
		response = respond(result.StatusCode, result.Body)
		for name, value := range result.Headers {
			response.Header.Set(name, value)
		}
	}
	return response
}

// handlers prepares a program of examples/handlers, or one like it, and returns a function that calls it with events.
func handlers(t *testing.T, endpoint, file, source string) func(t testing.TB, events ...string) []handlerOutcome {
	t.Helper()
	app := driven(t, file, source)
	return func(t testing.TB, events ...string) []handlerOutcome {
		t.Helper()
		cmd := app.command(t, endpoint)
		cmd.Stdin = strings.NewReader(strings.Join(events, "\n") + "\n")
		return outcomesOf(t, cmd, len(events))
	}
}

// driven prepares a program whose handler testdata/handlers.* calls.
func driven(t testing.TB, file, source string) program {
	t.Helper()
	app := install(t, file, source)
	if strings.Contains(source, "from fastapi import") {
		app.run[0] = testkit.Package(t, "examples", "venv/bin/python")
	}
	driver := testkit.Must(filepath.Abs(filepath.Join("testdata", "handlers"+filepath.Ext(file))))(t)
	app.run = slices.Insert(app.run, 1, driver)
	return app
}

// outcomesOf runs a driven program that is called with n events.
func outcomesOf(t testing.TB, cmd *exec.Cmd, n int) (all []handlerOutcome) {
	t.Helper()
	ended := finish(t, cmd)
	for line := range strings.Lines(ended.stdout) {
		var o handlerOutcome
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, o)
	}
	if ended.status != 0 || len(all) != n {
		t.Fatalf("status %d, and %d outcomes of %d: %s", ended.status, len(all), n, ended.stderr)
	}
	return all
}

// refusesAsHTTP calls a handler for a user who may create a post, for one who may not, and for nobody.
func refusesAsHTTP(t *testing.T, endpoint string, on platform, call func(t testing.TB, events ...string) []handlerOutcome) {
	t.Helper()
	testkit.Retry(t, func(t testing.TB) { // the handlers have the client's own timeouts
		t.Helper()
		may, mayNot := rand.Text(), rand.Text()
		askPosts(t, endpoint, mayNot, `,"count":10`)
		all := call(t, fmt.Sprintf(on.event, may), fmt.Sprintf(on.event, mayNot), fmt.Sprintf(on.event, ""))
		if got := on.answer(all[0]); got.StatusCode != http.StatusCreated || got.Text != "created" {
			t.Errorf("allowed: %+v, want 201", got)
		}
		refuses(t, on.answer(all[1]))
		if got := on.answer(all[2]); got.StatusCode < 400 {
			t.Errorf("without a user: %+v, want an error", got)
		}
	})
}

func TestHandlersOfHTTPRequestsRefuse(t *testing.T) {
	testkit.Clients.Need(t)
	endpoint := serve(t)
	for file, platforms := range map[string][]platform{
		"api.mjs":  {restAPI, httpAPI, functionURL},
		"api.py":   {restAPI, httpAPI, functionURL},
		"next.mjs": {nextJS},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			call := handlers(t, endpoint, file, text(t, "examples", "handlers", file))
			for _, on := range platforms {
				refusesAsHTTP(t, endpoint, on, call)
			}
		})
	}
}

// One GraphQL request can hold many mutations, and a mutation many posts. Each post counts.
func TestResolversOfAppSyncCountEachWrite(t *testing.T) {
	testkit.Clients.Need(t)
	endpoint := serve(t)
	for _, file := range []string{"appsync.mjs", "appsync.py"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			call := handlers(t, endpoint, file, text(t, "examples", "handlers", file))
			testkit.Retry(t, func(t testing.TB) {
				user := rand.Text()
				resolve := func(input string) string {
					return fmt.Sprintf(`{"arguments":%s,"identity":{"sub":%q},"info":{"fieldName":"createPost"}}`, input, user)
				}
				one, eight := resolve(`{"text":"a"}`), resolve(`{"texts":["a","b","c","d","e","f","g","h"]}`)
				var got []string
				for _, o := range call(t, one, eight, eight, one, one) {
					got = append(got, cmp.Or(strings.ReplaceAll(string(o.Result), " ", ""), o.ErrorType+": "+o.ErrorMessage))
				}
				const refused = "LimitedError: Rate limit exceeded: Too many requests in a short period"
				if want := []string{`{"created":1}`, `{"created":8}`, refused, `{"created":1}`, refused}; !slices.Equal(got, want) {
					t.Errorf("outcomes %q, want %q", got, want)
				}
				if counted := askPosts(t, endpoint, user, `,"op":"status"`); counted != 10 {
					t.Errorf("%d counted, want 10", counted)
				}
			})
		})
	}
}

func TestMessagesInAWebSocketAreRefused(t *testing.T) {
	testkit.Clients.Need(t)
	endpoint := serve(t)
	for file, event := range map[string]string{
		"websocket.mjs": `{"body":"{\"text\":\"hello\"}","requestContext":{"authorizer":{"principalId":"%s"}}}`,
		"websocket.py":  `{"user":"%s","text":"hello"}`,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			call := handlers(t, endpoint, file, text(t, "examples", "handlers", file))
			testkit.Retry(t, func(t testing.TB) {
				message := fmt.Sprintf(event, rand.Text())
				var got []string
				for _, o := range call(t, message, message, message) {
					var result struct{ Body string }
					_ = json.Unmarshal(o.Result, &result) // a WebSocket of FastAPI sends the result itself
					got = append(got, cmp.Or(result.Body, string(o.Result), o.ErrorMessage))
				}
				sent, refused := regexp.MustCompile(`^\{"sent": ?"hello"\}$`), regexp.MustCompile(`^\{"refused": ?"[A-Z][^"]+", ?"waitTime": ?[1-9]\d*\}$`)
				if !sent.MatchString(got[0]) || !refused.MatchString(got[2]) {
					t.Errorf("answers %q, want the first message sent and the last one refused", got)
				}
			})
		})
	}
}
