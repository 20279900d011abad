package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

// byAgent returns a client of an agent that answers with these replies in turn, and how many
// requests came.
func byAgent(t *testing.T, o client.Options, replies ...http.HandlerFunc) (*client.Guards, *atomic.Int64) {
	t.Helper()
	asked := new(atomic.Int64)
	server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		replies[min(int(asked.Add(1)), len(replies))-1](w, r)
	})
	o.Agent = server.URL
	return open(t, o), asked
}

// marked is a reply of an agent.
func marked(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Guards-Agent", "1")
		respond(status, "", body)(w, r)
	}
}

func problem(status int, detail string) http.HandlerFunc {
	return marked(status, fmt.Sprintf(`{"title":"t","status":%d,"detail":%q}`, status, detail))
}

// drops closes the connection without an answer.
func drops(w http.ResponseWriter, _ *http.Request) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}

func TestByAgent(t *testing.T) {
	t.Setenv("AWS_REGION", "") // none of AWS's settings is needed
	var r *http.Request
	var sent string
	keep := func(w http.ResponseWriter, got *http.Request) {
		body, _ := io.ReadAll(got.Body)
		r, sent = got, string(body)
		marked(200, okBody)(w, got)
	}
	g, _ := byAgent(t, client.Options{}, keep, marked(429, limitedBody), keep)
	d, err := g.Check(t.Context(), "create_post", u1)
	if err != nil || !d.Allowed || d.Remaining != 9 || d.Date.IsZero() {
		t.Errorf("%+v, %v", d, err)
	}
	if r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Guards-Token") != "local" ||
		r.Header.Get("Authorization") != "" || !strings.Contains(sent, `"activity":"create_post"`) || !strings.Contains(sent, `"requestId":"`) {
		t.Errorf("%s %s %v %s", r.Method, r.URL, r.Header, sent)
	}
	if d, err := g.Check(t.Context(), "create_post", u1); err != nil || d.Allowed || d.WaitTime != 2000 || d.Outage != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := g.Check(t.Context(), "posts-guard/create_post", u1); err != nil || r.URL.Path != "/posts-guard" {
		t.Errorf("%s, %v", r.URL, err)
	}
	listed, _ := byAgent(t, client.Options{Activities: activities, Token: "secret", Prefix: "dev-"}, keep)
	if d, err := listed.Check(t.Context(), "create_post", u1); err != nil || d.Guard != "posts-guard" || r.URL.Path != "/posts-guard" || r.Header.Get("Guards-Token") != "secret" {
		t.Errorf("%+v %s, %v", d, r.URL, err)
	}
	if _, err := listed.Check(t.Context(), "create_pots", u1); !errors.Is(err, client.ErrValidation) {
		t.Errorf("an activity that the list does not have: %v", err)
	}
}

// Each row of "a client sees | it is": asked is how many requests a status makes.
func TestWhatAnAgentsAnswerIs(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	for name, tt := range map[string]struct {
		reply   http.HandlerFunc
		kind    error
		message string
		asked   int64
	}{
		"200 of another program": {respond(200, "", okBody), client.ErrConfiguration, "Another program than guards-agent answers at http://127.0.0.1:", 1},
		"404 of another program": {respond(404, "", "not found"), client.ErrConfiguration, "Another program than guards-agent answers at ", 1},
		"500 of another program": {respond(500, "", "oops"), client.ErrConfiguration, "Another program than guards-agent answers at ", 1},
		"503 of another program": {respond(503, "", `{"errorType":"Unavailable","detail":"d"}`), client.ErrConfiguration, "Another program than guards-agent answers at ", 1},
		"a redirect":             {http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect).ServeHTTP, client.ErrConfiguration, "Another program than guards-agent answers at ", 1},
		"a redirect of the agent": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Guards-Agent", "1")
			w.Header().Set("Location", "/x")
			w.WriteHeader(307)
		}, client.ErrConfiguration, "the agent at ", 1},
		"403":                      {problem(403, "the Guards-Token is wrong"), client.ErrConfiguration, "The agent at ", 1},
		"404":                      {problem(404, "the path is"), client.ErrConfiguration, "The agent at ", 1},
		"405":                      {problem(405, "method is"), client.ErrConfiguration, "The agent at ", 1},
		"415":                      {problem(415, "Content-Type is"), client.ErrConfiguration, "The agent at ", 1},
		"500":                      {problem(500, `GUARDS_MODE is "of", about u1`), client.ErrConfiguration, "The agent at ", 1},
		"413":                      {problem(413, "the body has"), client.ErrValidation, "the request has more than 64 KiB", 1},
		"400":                      {marked(400, `{"status":400,"detail":"count is 0","errorType":"ValidationError"}`), client.ErrValidation, "count is 0", 1},
		"503":                      {marked(503, `{"status":503,"detail":"the table","errorType":"Unavailable"}`), client.ErrOutage, "the agent at ", 1},
		"no answer of a guard":     {marked(200, "<html>"), client.ErrAnswer, "the agent at ", 1},
		"too long":                 {marked(200, long), client.ErrAnswer, "the agent at ", 1},
		"a connection that breaks": {drops, client.ErrConfiguration, "No agent answers at http://127.0.0.1:", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, asked := byAgent(t, client.Options{}, tt.reply)
			_, err := g.Status(t.Context(), "create_post", u1)
			if !errors.Is(err, tt.kind) || !strings.HasPrefix(err.Error(), tt.message) || asked.Load() != tt.asked || strings.Contains(err.Error(), "u1") {
				t.Errorf("%v: %v after %d requests, want %v: %s after %d", kindOf(err), err, asked.Load(), tt.kind, tt.message, tt.asked)
			}
			if d, err := g.Check(t.Context(), "create_post", u1); errors.Is(tt.kind, client.ErrConfiguration) && (err == nil || d.Allowed) {
				t.Errorf("a check: %+v, %v, want nobody to pass", d, err)
			}
		})
	}
}

// listen returns a listener on a free port, and its address.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	l := testkit.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	return l, "http://" + l.Addr().String()
}

// Before an agent has ever answered, nobody listens or nobody answers: a mistake, which lets
// nobody pass. Refused connections are repeated for the call's whole time, because the agent can
// start after the app. Then the calls of the next second fail at once with the same error.
func TestAMissingAgent(t *testing.T) {
	t.Parallel()
	closed, nobody := listen(t)
	_ = closed.Close()
	quiet, silent := listen(t)
	t.Cleanup(func() { _ = quiet.Close() })
	other := testkit.OpenPort(t)
	other.Speak(func(c net.Conn) { _, _ = io.WriteString(c, ssh) })
	for name, tt := range map[string]struct {
		agent, why string
		least      time.Duration
	}{
		"nobody listens":    {nobody, "connection refused", 2500 * time.Millisecond},
		"no socket":         {"unix:" + filepath.Join(t.TempDir(), "no.sock"), "no such file", 2500 * time.Millisecond},
		"nobody answers":    {silent, "no answer in time", 2500 * time.Millisecond},
		"it speaks no HTTP": {"http://" + other.Addr(), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t, client.Options{Agent: tt.agent})
			began := time.Now()
			d, err := g.Check(t.Context(), "create_post", u1)
			took := time.Since(began)
			if !errors.Is(err, client.ErrConfiguration) || d.Allowed || !strings.HasPrefix(err.Error(), "No agent answers at "+tt.agent+": ") || !strings.Contains(err.Error(), tt.why) ||
				took < tt.least || took > 6*time.Second {
				t.Errorf("after %v: %+v, %v", took, d, err)
			}
			began = time.Now()
			_, again := g.Check(t.Context(), "create_post", u1)
			if took := time.Since(began); !errors.Is(again, client.ErrConfiguration) || again.Error() != err.Error() || took > 500*time.Millisecond {
				t.Errorf("the next one, after %v: %v, want at once %v", took, again, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			time.Sleep(time.Second) // it may ask again
			if _, err := g.Check(ctx, "create_post", u1); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, client.ErrConfiguration) {
				t.Errorf("with a deadline: %v", err)
			}
		})
	}
}

// An agent that starts after the app is asked as soon as it is there.
func TestAnAgentThatStartsLater(t *testing.T) {
	t.Parallel()
	l, address := listen(t)
	_ = l.Close()
	g := open(t, client.Options{Agent: address})
	time.AfterFunc(700*time.Millisecond, func() {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Error(err)
			return
		}
		server := &http.Server{Handler: marked(200, okBody), ReadHeaderTimeout: time.Minute}
		t.Cleanup(func() { _ = server.Close() })
		go func() { _ = server.Serve(l) }()
	})
	if d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1", Partial: true, Count: 2}); err != nil || !d.Allowed || d.Outage != nil {
		t.Errorf("%+v, %v", d, err)
	}
}

// Once an agent has answered this process, its silence is an outage, also for another client of
// this process. Another program on its port is still a mistake.
func TestAnAgentThatGoes(t *testing.T) {
	t.Parallel()
	var reply atomic.Value
	reply.Store(marked(200, okBody))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reply.Load().(http.HandlerFunc)(w, r) }))
	defer server.Close()
	g := open(t, client.Options{Agent: server.URL})
	testkit.Must(g.Check(t.Context(), "create_post", u1))(t)
	reply.Store(http.HandlerFunc(drops))
	if d, err := open(t, client.Options{Agent: server.URL}).Check(t.Context(), "create_post", u1); err != nil || !d.Allowed || d.Outage == nil {
		t.Errorf("it breaks: %+v, %v", d, err)
	}
	if d, err := open(t, client.Options{Agent: server.URL, OnOutage: client.Deny}).Check(t.Context(), "create_post", u1); err != nil || d.Allowed || d.Outage == nil {
		t.Errorf("it breaks, with Deny: %+v, %v", d, err)
	}
	reply.Store(respond(200, "", okBody))
	if d, err := g.Check(t.Context(), "create_post", u1); !errors.Is(err, client.ErrConfiguration) || d.Allowed {
		t.Errorf("another program: %+v, %v", d, err)
	}
	server.Close()
	if d, err := g.Check(t.Context(), "create_post", u1); err != nil || !d.Allowed || !errors.Is(d.Outage, client.ErrOutage) || strings.Contains(d.Outage.Error(), "since it started") {
		t.Errorf("it is gone: %+v, %v", d, err)
	}
}

// A repeat takes a new connection, and has the same id.
func TestARepeatToTheAgent(t *testing.T) {
	t.Parallel()
	ids := make(chan string, 3)
	note := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, id, _ := strings.Cut(string(body), `"requestId":"`)
			ids <- r.RemoteAddr + " " + id[:36]
			next(w, r)
		}
	}
	g, _ := byAgent(t, client.Options{}, note(drops), note(marked(200, okBody)))
	if d, err := g.Check(t.Context(), "create_post", u1); err != nil || !d.Allowed || d.Outage != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	first, second := strings.Fields(<-ids), strings.Fields(<-ids)
	if first[0] == second[0] || first[1] != second[1] {
		t.Errorf("%v and then %v", first, second)
	}
}

// The variables are for an app whose code says nothing. The option wins.
func TestTheVariablesOfAnAgent(t *testing.T) {
	var token string
	server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Guards-Token")
		marked(200, okBody)(w, r)
	})
	t.Setenv("GUARDS_AGENT", server.URL+"/")
	t.Setenv("GUARDS_AGENT_TOKEN", "of-the-variable")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	for want, o := range map[string]client.Options{
		"of-the-variable": {},
		"of-the-option":   {Token: "of-the-option", URLs: map[string]string{"posts-guard": "https://example.com/"}, Activities: activities, Prefix: "dev-"},
	} {
		if d, err := open(t, o).Check(t.Context(), "create_post", u1); err != nil || !d.Allowed || token != want {
			t.Errorf("%+v: %+v, %v, with the token %s", o, d, err, token)
		}
	}
	t.Setenv("GUARDS_AGENT", "http://127.0.0.1:1")
	if d, err := open(t, client.Options{Agent: server.URL}).Check(t.Context(), "create_post", u1); err != nil || !d.Allowed {
		t.Errorf("with the option: %+v, %v", d, err)
	}
}

func TestWrongOptionsOfAnAgent(t *testing.T) {
	for want, o := range map[string]client.Options{
		"the address of the agent has another form":                                                 {Agent: "127.0.0.1:2774"},
		"the address of the agent has another form, want http://H":                                  {Agent: "http://user:password@127.0.0.1:2774"},
		"the address of the agent has another form, want http://HOST:PORT, https://HOST or unix:/P": {Agent: "http://127.0.0.1:2774/posts-guard"},
		`Agent is "unix:agent.sock", want`:                                                          {Agent: "unix:agent.sock"},
		"Agent does not go with Client":                                                             {Agent: "http://127.0.0.1:2774", Client: lambda.New(lambda.Options{})},
		"Token goes only with Agent":                                                                {Token: "secret"},
		"the token for the agent has":                                                               {Agent: "http://127.0.0.1:2774", Token: "a\nb"},
	} {
		if _, err := client.New(t.Context(), o); !errors.Is(err, client.ErrConfiguration) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "password") {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	var warnings []string
	for _, address := range []string{"http://agent.internal:2774", "https://agent.internal", "http://127.0.0.1:2774", "http://[::1]:2774", "unix:/run/agent.sock"} {
		open(t, client.Options{Agent: address, Token: "secret", Warn: func(err error) { warnings = append(warnings, err.Error()) }})
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "the agent's token goes over the network without encryption, to agent.internal:2774") || strings.Contains(warnings[0], "secret") {
		t.Errorf("%q, want one warning", warnings)
	}
}

// Without a list, ready asks for the agent's health. With names, it asks for each.
func TestReadyWithAnAgent(t *testing.T) {
	var asked []string
	var healthy atomic.Bool
	server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		switch {
		case r.URL.Path != "/health":
			marked(200, okBody)(w, r)
		case healthy.Load():
			marked(200, `{"status":"ok"}`)(w, r)
		default:
			problem(503, `GUARDS_MODE is "of"`)(w, r)
		}
	})
	g := open(t, client.Options{Agent: server.URL})
	if err := g.Ready(t.Context()); !errors.Is(err, client.ErrConfiguration) || !strings.HasSuffix(err.Error(), `can't decide: GUARDS_MODE is "of"`) {
		t.Error(err)
	}
	healthy.Store(true)
	testkit.NoError(t, g.Ready(t.Context()))
	testkit.NoError(t, g.Ready(t.Context(), "create_post"))
	if got := strings.Join(asked, ", "); got != "GET /health, GET /health, POST /" {
		t.Error(got)
	}
}
