package httpguard_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/client/httpguard"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/limiter"
)

// signIns is a client of a limiter in this process. Two failures of an account lock it.
func signIns(t *testing.T) *client.Guards {
	t.Helper()
	l := testkit.Must(limiter.InMemory([]guards.Guard{{Name: "doors-guard", Message: "m", Activities: []guards.Activity{
		{Name: "sign_in", Limit: "lockout 2/15m for 1m"},
	}}}, nil))(t)
	return testkit.Must(client.New(t.Context(), client.Options{Local: l, Warn: func(err error) { t.Error(err) }}))(t)
}

// failures returns how many attempts of u1 count.
func failures(t *testing.T, g *client.Guards) int64 {
	t.Helper()
	return testkit.Must(g.Status(t.Context(), "sign_in", client.Request{UserID: "u1"}))(t).ActivityCount
}

func u1(*http.Request) string { return "u1" }

// unauthorized counts failed sign-ins.
func unauthorized(status int) bool { return status == http.StatusUnauthorized }

// What the user sees decides, and a guess that nobody sees counts.
func TestCountIfDecidesWhenTheHeadersAreSent(t *testing.T) {
	status := func(codes ...int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for _, code := range codes {
				w.WriteHeader(code)
			}
		}
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		countIf func(int) bool // nil: unauthorized
		status  int            // 0: the connection is closed
		counts  int64
	}{
		"401":             {status(401), nil, 401, 1},
		"200":             {status(200), nil, 200, 0},
		"500":             {status(500), nil, 500, 0},
		"the first one":   {status(401, 200), nil, 401, 1},
		"after a hint":    {status(103, 401), nil, 401, 1},
		"no status":       {status(99), nil, 0, 1}, // WriteHeader panics
		"nothing":         {func(http.ResponseWriter, *http.Request) {}, nil, 200, 0},
		"only a body":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "welcome"); w.WriteHeader(401) }, nil, 200, 0},
		"flushed":         {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); w.WriteHeader(401) }, nil, 200, 0},
		"a panic":         {func(http.ResponseWriter, *http.Request) { panic("broken") }, nil, 0, 1},
		"a panic later":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic("broken") }, nil, 0, 0},
		"CountIf panics":  {status(200), func(int) bool { panic("broken") }, 200, 1},
		"all but success": {status(500), func(status int) bool { return status >= 400 }, 500, 1},
		"taken over": {func(w http.ResponseWriter, _ *http.Request) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = c.Close()
			}
		}, nil, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := signIns(t)
			asked := 0
			limit := httpguard.Middleware{Guards: g, Activity: "sign_in", User: u1, CountIf: func(status int) bool {
				asked++
				if tt.countIf == nil {
					return unauthorized(status)
				}
				return tt.countIf(status)
			}}
			got := statusOf(limit.Handler(tt.handler))
			if counts := failures(t, g); got != tt.status || counts != tt.counts || asked > 1 {
				t.Errorf("%d, %d attempts count, and CountIf was asked %d times; want %d, and %d count", got, counts, asked, tt.status, tt.counts)
			}
		})
	}
}

// A connection that a WebSocket takes over counts. Some libraries write 101 and its headers
// before that.
func TestAWebSocketCounts(t *testing.T) {
	g := signIns(t)
	limit := httpguard.Middleware{Guards: g, Activity: "sign_in", User: u1, CountIf: unauthorized}
	server := httptest.NewServer(limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Upgrade", "websocket")
		w.WriteHeader(http.StatusSwitchingProtocols)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	})))
	defer server.Close()
	r := testkit.Send(t, http.MethodGet, server.URL, "")
	if h := r.Header; r.StatusCode != 101 || h.Get("Upgrade") != "websocket" || h.Get("RateLimit") == "" || failures(t, g) != 1 {
		t.Errorf("%d %v, and %d attempts count, want 101 with the headers, and 1", r.StatusCode, h, failures(t, g))
	}
}

// plain is a ResponseWriter without other methods, such as that of http.TimeoutHandler.
type plain struct{ http.ResponseWriter }

// A handler that could not flush or take over the connection has sent nothing yet.
func TestWhatTheServerCannotDoDecidesNothing(t *testing.T) {
	for name, try := range map[string]func(*http.ResponseController) error{
		"flush":     (*http.ResponseController).Flush,
		"take over": func(c *http.ResponseController) error { _, _, err := c.Hijack(); return err },
	} {
		g := signIns(t)
		limit := httpguard.Middleware{Guards: g, Activity: "sign_in", User: u1, CountIf: unauthorized}
		handler := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := try(http.NewResponseController(w)); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("%s: %v", name, err)
			}
			w.WriteHeader(http.StatusUnauthorized)
		}))
		w := httptest.NewRecorder()
		handler.ServeHTTP(plain{w}, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
		if w.Code != http.StatusUnauthorized || failures(t, g) != 1 {
			t.Errorf("%s: %d, and %d attempts count", name, w.Code, failures(t, g))
		}
	}
}

// A handler that notices that its client has gone returns early, and that is no success.
func TestAGuessOfAClientThatHasGoneCounts(t *testing.T) {
	g := signIns(t)
	limit := httpguard.Middleware{Guards: g, Activity: "sign_in", User: u1, CountIf: unauthorized}
	for _, answer := range []func(http.ResponseWriter){func(http.ResponseWriter) {}, func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }} {
		ctx, leave := context.WithCancel(t.Context())
		handler := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { leave(); answer(w) }))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/", http.NoBody))
	}
	if got := failures(t, g); got != 2 {
		t.Errorf("%d attempts count, want both", got)
	}
}

// A refused request is no attempt: nobody asks CountIf, and no mail is sent for it.
func TestARefusedRequestIsNotCounted(t *testing.T) {
	g := signIns(t)
	asked, mails := 0, 0
	limit := httpguard.Middleware{
		Guards: g, Activity: "sign_in", User: u1,
		CountIf: func(status int) bool { asked++; return unauthorized(status) },
		Request: func(*http.Request) client.Request {
			return client.Request{OnLocked: func(d client.Decision) {
				mails++
				if !d.Locked {
					t.Errorf("%+v", d)
				}
			}}
		},
	}
	handler := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d, ok := httpguard.DecisionFrom(r.Context()); !ok || d.Activity != "sign_in" {
			t.Errorf("%+v", d)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	for i, want := range []int{401, 401, 429, 429} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
		if w.Code != want || w.Header().Get("RateLimit") == "" || want == 429 && !strings.Contains(w.Body.String(), `"locked":true`) {
			t.Errorf("request %d: %d %v %s, want %d", i+1, w.Code, w.Header(), w.Body, want)
		}
	}
	if asked != 2 || mails != 1 {
		t.Errorf("CountIf was asked %d times, and %d mails were sent; want 2 and 1", asked, mails)
	}
}

// A success forgets the failures before it, if the request has Clear.
func TestASuccessThatClears(t *testing.T) {
	g := signIns(t)
	testkit.Must(g.Check(t.Context(), "sign_in", client.Request{UserID: "u1"}))(t)
	w := serve(t, httpguard.Middleware{Guards: g, Activity: "sign_in", User: u1, CountIf: unauthorized, Request: func(*http.Request) client.Request {
		return client.Request{Clear: true}
	}})
	if got := failures(t, g); w.Code != http.StatusTeapot || got != 0 {
		t.Errorf("%d, and %d attempts count", w.Code, got)
	}
}

// What would let guesses through, or counts more than one, is a mistake. Nothing is counted.
func TestAnAttemptOfMiddlewareHasAnIDOfItsOwn(t *testing.T) {
	for name, r := range map[string]client.Request{"RequestID": {RequestID: "r1"}, "Count": {Count: 2}} {
		g := signIns(t)
		var failed error
		w := serve(t, httpguard.Middleware{
			Guards: g, Activity: "sign_in", User: u1, CountIf: unauthorized, Request: func(*http.Request) client.Request { return r },
			Failed: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
		})
		if !errors.Is(failed, client.ErrConfiguration) || w.Code != http.StatusInternalServerError || failures(t, g) != 0 {
			t.Errorf("%s: %d, %v", name, w.Code, failed)
		}
	}
}

// What gives the action back is decided by the same limit.
func TestAnAttemptOfMiddlewareKeepsItsLimit(t *testing.T) {
	limit, g := paid(t, func(*http.Request) guards.Numbers { return guards.Number(500) })
	limit.CountIf = unauthorized
	serve(t, limit)
	calls := g.Calls()
	if len(calls) != 2 || calls[1].Op != guards.Release || calls[0].Limit[""] != 500 || calls[1].Limit[""] != 500 {
		t.Errorf("%+v, want a check and a release with the limit", calls)
	}
}

// A panic of CountIf is the app's own mistake, and somebody should see it.
func TestAPanicOfCountIfIsLogged(t *testing.T) {
	log := testkit.DefaultLog(t)
	serve(t, httpguard.Middleware{Guards: signIns(t), Activity: "sign_in", User: u1, CountIf: func(int) bool { panic("broken") }})
	if !strings.Contains(log.String(), "CountIf panicked") || strings.Contains(log.String(), "u1") {
		t.Errorf("the log has %s", log)
	}
}
