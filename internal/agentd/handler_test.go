package agentd_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/agentd"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// counted is a guard that knows how many requests reached it.
type counted struct {
	*guard.Handler
	reached *atomic.Int64
}

func (c counted) Respond(ctx context.Context, body []byte) guard.Response {
	c.reached.Add(1)
	return c.Handler.Respond(ctx, body)
}

// cricketGuards returns a handler of this app's guards, and how many requests reached one.
func cricketGuards(token string) (*agentd.Handler, *atomic.Int64) {
	h, reached := &agentd.Handler{Token: token}, new(atomic.Int64)
	for _, g := range cricket.All {
		h.Add(g, counted{&guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}, JobsElsewhere: true}, reached})
	}
	return h, reached
}

// request returns a check as a client sends it, changed by with: names and values of headers in
// turn. A value "-" removes the header. Host, Method, Path and Body are no headers.
func request(ctx context.Context, with ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/posts-guard", strings.NewReader(`{"userId":"u1","activity":"create_post"}`))
	r.Host = "127.0.0.1:2774"
	r.Header.Set("Guards-Token", "local")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(with); i += 2 {
		switch name, value := with[i], with[i+1]; {
		case name == "Host":
			r.Host = value
		case name == "Method":
			r.Method = value
		case name == "Path":
			r.URL.Path = value
		case name == "Body":
			body := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(value))
			r.Body, r.ContentLength = body.Body, body.ContentLength
		case value == "-":
			r.Header.Del(name)
		default:
			r.Header.Add(name, value)
		}
	}
	return r
}

// Each row of the table of refusals: nothing of them reaches a guard, and the caller learns why
// from a problem document.
func TestWhatTheAgentRefuses(t *testing.T) {
	long := `{"userId":"u1","activity":"create_post","job":"` + strings.Repeat("x", 64<<10) + `"}`
	for name, tt := range map[string]struct {
		token  string
		with   []string
		status int
		detail string
	}{
		"no token":                        {"", []string{"Guards-Token", "-"}, 403, "the request has no header Guards-Token"},
		"a wrong token":                   {"", []string{"Guards-Token", "-", "Guards-Token", "Local"}, 403, "the Guards-Token is wrong: no token is configured here, so it is the word local"},
		"an empty token":                  {"", []string{"Guards-Token", "-", "Guards-Token", ""}, 403, "the Guards-Token is wrong"},
		"two tokens":                      {"", []string{"Guards-Token", "other"}, 403, "the request has no header Guards-Token: each POST needs it once"},
		"the word instead of the token":   {"secret", nil, 403, "the Guards-Token is wrong: want the GUARDS_AGENT_TOKEN of the agent"},
		"a wrong token of its length":     {"secret", []string{"Guards-Token", "-", "Guards-Token", "sekret"}, 403, "the Guards-Token is wrong"},
		"an Origin":                       {"", []string{"Origin", "http://127.0.0.1:2774"}, 403, "the request has an Origin"},
		"an empty Origin":                 {"", []string{"Origin", ""}, 403, "the request has an Origin"},
		"a Sec-Fetch-Site":                {"", []string{"Sec-Fetch-Site", "same-origin"}, 403, "the request has a Sec-Fetch-Site"},
		"an Origin with the token":        {"secret", []string{"Guards-Token", "-", "Guards-Token", "secret", "Origin", "null"}, 403, "the request has an Origin"},
		"another Host":                    {"", []string{"Host", "evil.example:2774"}, 403, `the Host is "evil.example:2774", want localhost`},
		"a Host that begins as ours":      {"", []string{"Host", "localhost.evil.example"}, 403, "the Host is"},
		"a Host that ends as ours":        {"", []string{"Host", "evil.localhost"}, 403, "the Host is"},
		"a Host with another port":        {"", []string{"Host", "127.0.0.1:2774.evil.example"}, 403, "the Host is"},
		"no Host":                         {"", []string{"Host", ""}, 403, "the Host is"},
		"GET of a foreign page":           {"", []string{"Method", "GET", "Path", "/health", "Origin", "http://evil.example"}, 403, "the request has an Origin"},
		"a path of no guard":              {"", []string{"Path", "/photos-guard"}, 404, `the path is "/photos-guard", want /, /health or the name of a guard`},
		"a path below a guard":            {"", []string{"Path", "/posts-guard/x"}, 404, "the path is"},
		"a path with two slashes":         {"", []string{"Path", "//posts-guard"}, 404, "the path is"},
		"GET of a guard":                  {"", []string{"Method", "GET"}, 405, `method is "GET", want POST`},
		"GET of /":                        {"", []string{"Method", "GET", "Path", "/"}, 405, `method is "GET", want POST`},
		"PUT":                             {"", []string{"Method", "PUT"}, 405, `method is "PUT", want POST`},
		"POST of /health":                 {"", []string{"Path", "/health"}, 405, `method is "POST", want GET`},
		"a form":                          {"", []string{"Content-Type", "-", "Content-Type", "text/plain"}, 415, `Content-Type is "text/plain", want application/json`},
		"no content type":                 {"", []string{"Content-Type", "-"}, 415, "Content-Type is"},
		"two content types":               {"", []string{"Content-Type", "text/plain"}, 415, "Content-Type is"},
		"more than 64 KiB":                {"", []string{"Body", long}, 413, "the body has more than 64 KiB"},
		"an activity of another guard":    {"", []string{"Body", `{"userId":"u1","activity":"pin"}`}, 400, `activity is "pin", want one of posts-guard's: `},
		"an activity that nobody has":     {"", []string{"Path", "/", "Body", `{"userId":"u1","activity":"publish"}`}, 400, `activity is "publish", want one that the page of limits names`},
		"no activity":                     {"", []string{"Path", "/", "Body", `{"userId":"u1"}`}, 400, `activity is "", want one that the page of limits names`},
		"no JSON":                         {"", []string{"Path", "/", "Body", `{`}, 400, "event is not valid JSON"},
		"an activity twice":               {"", []string{"Path", "/", "Body", `{"userId":"u1","activity":"pin","activity":"create_post"}`}, 400, ""},
		"a job, which needs the function": {"", []string{"Path", "/jobs-guard", "Body", `{"userId":"g1","activity":"update_member_role","job":{}}`}, 400, "job goes only to a function: ask jobs-guard by Invoke"},
	} {
		t.Run(name, func(t *testing.T) {
			h, reached := cricketGuards(tt.token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(t.Context(), tt.with...))
			var problem struct {
				Status int
				Detail string
			}
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || w.Code != tt.status || problem.Status != tt.status || !strings.HasPrefix(problem.Detail, tt.detail) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, tt.status, tt.detail)
			}
			if kind := w.Header().Get("Content-Type"); kind != "application/problem+json" || w.Header().Get("Guards-Agent") != "1" {
				t.Errorf("the headers are %v", w.Header())
			}
			if strings.Contains(w.Body.String(), "secret") || tt.status != 400 && reached.Load() != 0 {
				t.Errorf("%d requests reached a guard; the answer is %s", reached.Load(), w.Body)
			}
		})
	}
}

// The agent accepts requests from the app itself, by the path of the guard or by the activity. It
// answers like a Function URL.
func TestWhatTheAgentAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		token string
		with  []string
	}{
		"the guard":                 {},
		"a slash at its end":        {"", []string{"Path", "/posts-guard/"}},
		"the activity":              {"", []string{"Path", "/"}},
		"localhost":                 {"", []string{"Host", "localhost"}},
		"LOCALHOST and a port":      {"", []string{"Host", "LOCALHOST:80"}},
		"IPv6":                      {"", []string{"Host", "[::1]:2774"}},
		"a charset":                 {"", []string{"Content-Type", "-", "Content-Type", "application/json; charset=utf-8"}},
		"a token, and another Host": {"secret", []string{"Guards-Token", "-", "Guards-Token", "secret", "Host", "guards.internal:2774"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := cricketGuards(tt.token)
			testkit.InOneWindow(t, time.Minute, 5*time.Second)
			for n := range 11 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, request(t.Context(), tt.with...))
				want, kind := 200, "application/json"
				if n == 10 {
					want, kind = 429, "application/problem+json"
				}
				if w.Code != want || w.Header().Get("Content-Type") != kind || w.Header().Get("Guards-Agent") != "1" ||
					!strings.HasPrefix(w.Header().Get("RateLimit"), `"create_post";r=`) || (w.Header().Get("Retry-After") != "") != (n == 10) {
					t.Fatalf("%d: %d %v %s", n, w.Code, w.Header(), w.Body)
				}
			}
		})
	}
}

// A socket has no port that another site's name could lead to, so any Host is good.
func TestAnyHostOnASocket(t *testing.T) {
	h, reached := cricketGuards("")
	h.Private = true
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(t.Context(), "Host", "unix"))
	if w.Code != 200 || reached.Load() != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHealth(t *testing.T) {
	h, reached := cricketGuards("secret")
	ask := func(with ...string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(t.Context(), append([]string{"Method", "GET", "Path", "/health", "Guards-Token", "-"}, with...)...))
		return w
	}
	if w := ask(); w.Code != 200 || !regexp.MustCompile(`^\{"status":"ok","version":"(devel|v\d\S+)"\}$`).MatchString(w.Body.String()) || w.Header().Get("Guards-Agent") != "1" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	h.Mistake = fmt.Errorf("GUARDS_MODE is %q", "of")
	if w := ask(); w.Code != 503 || !strings.Contains(w.Body.String(), `GUARDS_MODE is \"of\"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	event := []string{"Method", "POST", "Path", "/posts-guard"}
	if w := ask(append(event, "Guards-Token", "secret")...); w.Code != 500 || !strings.Contains(w.Body.String(), `GUARDS_MODE is \"of\"`) || reached.Load() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(append(event, "Guards-Token", "local")...); w.Code != 403 {
		t.Errorf("a wrong token: %d %s", w.Code, w.Body)
	}
}

type panics struct{}

func (panics) Respond(context.Context, []byte) guard.Response { panic("a mistake about u1") }

// A panic is answered, and logged by the agent. The answer does not repeat it.
func TestAPanicOfARequest(t *testing.T) {
	var got any
	h := &agentd.Handler{Panicked: func(value any, _ []byte) { got = value }}
	h.Add(cricket.Posts, panics{})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(t.Context()))
	if w.Code != 500 || strings.Contains(w.Body.String(), "u1") || w.Header().Get("Guards-Agent") != "1" || got != "a mistake about u1" {
		t.Errorf("%d %s, reported %v", w.Code, w.Body, got)
	}
}

// A caller that leaves ends its own wait and not the decision: what it counts can be given back
// only by the guard.
func TestADecisionOutlivesItsCaller(t *testing.T) {
	h, _ := cricketGuards("")
	ctx, leave := context.WithCancel(t.Context())
	seen := make(chan error, 1)
	h.Add(cricket.Posts, respond(func(ctx context.Context) {
		leave()
		seen <- ctx.Err()
	}))
	h.ServeHTTP(httptest.NewRecorder(), request(ctx))
	testkit.NoError(t, <-seen)
}

type respond func(context.Context)

func (r respond) Respond(ctx context.Context, _ []byte) guard.Response {
	r(ctx)
	return guard.Problem(http.StatusTeapot, "")
}

// Whatever comes as HTTP, it is answered as the agent's table says. What reaches a guard is a
// POST of JSON with the token, and with nothing that only a browser sends.
func FuzzHandler(f *testing.F) {
	const valid = "POST /posts-guard HTTP/1.1\r\nHost: localhost:2774\r\nGuards-Token: local\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n" +
		`{"userId":"u1","activity":"create_post"}`
	for _, seed := range []string{
		valid,
		strings.Replace(valid, "/posts-guard", "/", 1),
		strings.Replace(valid, "POST", "GET", 1),
		strings.Replace(valid, "POST /posts-guard", "GET /health", 1),
		strings.Replace(valid, "/posts-guard", "http://evil.example/posts-guard", 1),
		strings.Replace(valid, "localhost", "evil.example", 1),
		strings.Replace(valid, "Guards-Token: local", "guards-token: local\r\nOrigin: null", 1),
		strings.Replace(valid, "Content-Length: 40", "Transfer-Encoding: chunked", 1),
		strings.Replace(valid, "local\r", "locaL\r", 1),
		strings.Replace(valid, "create_post", "\xffreate_post", 1),
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(strings.Replace(seed, "Guards-Token: local", "Guards-Token: secret", 1)), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, configured bool) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return // net/http itself refuses it
		}
		token, word := "", "local"
		if configured {
			token, word = "secret", "secret"
		}
		h, reached := cricketGuards(token)
		h.Panicked = func(value any, stack []byte) { t.Fatalf("%v\n%s", value, stack) }
		w := httptest.NewRecorder()
		func() {
			defer func() { _ = recover() }() // the body does not arrive: the connection ends
			h.ServeHTTP(w, r)
		}()
		if w.Header().Get("Guards-Agent") != "1" || strings.Contains(w.Body.String(), "secret") && !strings.Contains(string(raw), "secret") {
			t.Fatalf("%q: %v %s", raw, w.Header(), w.Body)
		}
		if w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%q: %s", raw, w.Body)
		}
		if reached.Load() == 0 {
			return
		}
		local := strings.HasPrefix(strings.ToLower(r.Host), "localhost") || strings.HasPrefix(r.Host, "127.0.0.1") || strings.HasPrefix(r.Host, "[::1]")
		if r.Method != http.MethodPost || r.Header.Get("Guards-Token") != word || r.Header["Origin"] != nil || r.Header["Sec-Fetch-Site"] != nil ||
			!strings.HasPrefix(strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Type"))), "application/json") || !configured && !local {
			t.Fatalf("%q reaches a guard", raw)
		}
	})
}
