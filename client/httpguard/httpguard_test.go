package httpguard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/activities"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/client/httpguard"
	"github.com/cric-talk/guards/guardstest"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/limiter"
)

// local invokes a guard in this process.
type local struct{ *guard.Handler }

// inMemory returns a guard that counts in memory.
func inMemory(g limits.Guard) local {
	return local{&guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}}}
}

func (l local) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	out, err := l.Handler.Invoke(ctx, in.Payload)
	return &lambda.InvokeOutput{Payload: out}, err
}

// down is a Lambda that does not answer.
type down struct{ err error }

func (d down) Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	return nil, d.err
}

// says is a guard with one answer.
type says string

func (s says) Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	return &lambda.InvokeOutput{Payload: []byte(s)}, nil
}

// memory is a guard whose table does not answer, so that its memory decides.
const memory = says(`{"allowed":true,"reason":"unavailable","userId":"u1","activity":"create_post","op":"check","granted":1}`)

func guardsBy(t *testing.T, lambda client.Invoker, onOutage client.OnOutage) *client.Guards {
	t.Helper()
	list := append(slices.Clone(activities.All), client.Activity{Name: "write", Guard: "several-guard", Window: time.Minute, Subjects: []string{"room"}})
	return testkit.Must(client.New(t.Context(), client.Options{Activities: list, Client: lambda, OnOutage: onOutage, MaxTries: 1, Warn: func(error) {}}))(t)
}

// A program that already understands a guard's Function URL understands the app
// too.
func TestTheAppAnswersAsTheGuardsOwnURL(t *testing.T) {
	several := limits.Guard{Name: "several-guard", Message: "too many", Activities: []limits.Activity{
		{Name: "post", Limit: policy.Must("minute: 2/1m, day: 5/1d")},
		{Name: "write", Limit: policy.Must("9/1m"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("5/1d")}}},
	}}
	for name, tt := range map[string]struct {
		guard    limits.Guard
		activity string
		noPolicy bool // the client can't know the window
	}{
		"fixed window": {cricket.Posts, "create_post", false},
		"named guard":  {cricket.Posts, "posts-guard/create_post", false},
		"log":          {cricket.Pins, "pin", false},
		"bucket":       {cricket.Chat, "send_message", false},
		"counter":      {cricket.Ingest, "ingest", false},
		"reservoir":    {cricket.Jobs, "update_member_role", false},
		"several":      {several, "several-guard/post", true},
		"room":         {several, "write", true},
		"unlimited":    {cricket.Posts, "like", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(1234567 * time.Microsecond)
				byURL := inMemory(tt.guard).Handler
				limit := httpguard.Middleware{
					Guards: guardsBy(t, inMemory(tt.guard), client.Allow), Activity: tt.activity, User: u1,
					Request: func(*http.Request) client.Request { return client.Request{RequestID: rID()} },
				}
				subjects := ""
				if tt.activity == "write" {
					subjects = `,"subjects":{"room":"r1"}`
					limit.Subjects = func(*http.Request) map[string]string { return map[string]string{"room": "r1"} }
				}
				next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					d, _ := httpguard.DecisionFrom(r.Context())
					w.Header().Set("Content-Type", "application/json")
					_ = json.NewEncoder(w).Encode(d.Decision) // the rest is not in the guard's own answer
				})
				for range 101 {
					ids++
					want := askURL(t, byURL, tt.guard, tt.activity, subjects)
					if tt.noPolicy {
						want.Header().Del("RateLimit-Policy")
					}
					got := httptest.NewRecorder()
					limit.Handler(next).ServeHTTP(got, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
					same(t, got, want)
				}
			})
		})
	}
}

// ids numbers the requests, so that both guards get the same ids.
var ids int

func rID() string {
	return fmt.Sprint("request-", ids)
}

// askURL returns what a Function URL in front of h answers. further holds other fields
// of the event.
func askURL(t *testing.T, h *guard.Handler, g limits.Guard, activity, further string) *httptest.ResponseRecorder {
	t.Helper()
	_, own, ok := strings.Cut(activity, "/")
	if !ok {
		own = activity
	}
	if _, known := g.Activity(own); !known {
		t.Fatal(own)
	}
	var e events.LambdaFunctionURLRequest
	e.RequestContext.HTTP.Method = http.MethodPost
	e.Body = `{"userId":"u1","activity":"` + own + `","requestId":"` + rID() + `"` + further + `}`
	payload := testkit.Must(json.Marshal(e))(t)
	out := testkit.Must(h.Invoke(t.Context(), payload))(t)
	var reply events.LambdaFunctionURLResponse
	testkit.OK(t, json.Unmarshal(out, &reply))
	w := httptest.NewRecorder()
	for name, value := range reply.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.StatusCode)
	_, _ = w.WriteString(reply.Body)
	return w
}

func same(t *testing.T, got, want *httptest.ResponseRecorder) {
	t.Helper()
	if diff := cmp.Diff(want.Header(), got.Header()); got.Code != want.Code || diff != "" {
		t.Errorf("status %d, want %d; headers (-guard +app):\n%s", got.Code, want.Code, diff)
	}
	if got, want := strings.TrimSpace(got.Body.String()), want.Body.String(); got != want {
		t.Errorf("the app answers\n%s\nand the guard\n%s", got, want)
	}
}

// paid returns middleware with a stand-in, and the stand-in.
func paid(t *testing.T, limit func(*http.Request) guards.Numbers) (httpguard.Middleware, *guardstest.Guards) {
	t.Helper()
	g := guardstest.New()
	return httpguard.Middleware{Guards: g.Client(t, activities.All), Activity: "create_post", User: u1, Limit: limit}, g
}

// The window of a bucket goes by its tier and its number, so the client does not know it.
func TestATierAndANumberHaveAnUnknownWindow(t *testing.T) {
	for name, r := range map[string]client.Request{"neither": {}, "a tier": {Tier: "burst"}, "a number": {Limit: guards.Number(500)}} {
		limit, _ := paid(t, nil)
		limit.Request = func(*http.Request) client.Request { return r }
		w := serve(t, limit)
		if known := w.Header().Get("RateLimit-Policy") != ""; w.Code != http.StatusTeapot || w.Header().Get("RateLimit") == "" || known != (name == "neither") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

// Limit wins over Request, as Subjects does. A wrong number lets nobody through.
func TestTheLimitOfARequest(t *testing.T) {
	contract := func(r *http.Request) guards.Numbers { return guards.Numbers{"tenant": r.ContentLength + 7} }
	byRequest := func(*http.Request) client.Request { return client.Request{Limit: guards.Number(7)} }
	for name, tt := range map[string]struct {
		limit   func(*http.Request) guards.Numbers
		request func(*http.Request) client.Request
		status  int
		want    guards.Numbers
	}{
		"none":       {nil, nil, http.StatusTeapot, nil},
		"by Request": {nil, byRequest, http.StatusTeapot, guards.Number(7)},
		"by Limit":   {contract, nil, http.StatusTeapot, guards.Numbers{"tenant": 7}},
		"both":       {contract, byRequest, http.StatusTeapot, guards.Numbers{"tenant": 7}},
		"wrong":      {func(*http.Request) guards.Numbers { return guards.Number(-1) }, byRequest, http.StatusInternalServerError, nil},
	} {
		limit, g := paid(t, tt.limit)
		limit.Request = tt.request
		limit.Failed = func(_ http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, client.ErrValidation) {
				t.Error(err)
			}
		}
		w := serve(t, limit)
		calls := g.Calls()
		if w.Code != tt.status || len(calls) > 1 || len(calls) == 0 != (tt.status != http.StatusTeapot) {
			t.Fatalf("%s: %d after %+v", name, w.Code, calls)
		}
		if len(calls) == 1 && !reflect.DeepEqual(calls[0].Limit, tt.want) {
			t.Errorf("%s: %+v, want %v", name, calls[0], tt.want)
		}
	}
}

// What the customer has not bought is refused as a block is: it violates no policy, and has no figures.
func TestTooLowALimitIsRefused(t *testing.T) {
	const answer = `"allowed":false,"reason":"limited","userId":"u1","activity":"create_post","op":"check","granted":0,"message":"m","limitedBy":"tenant"}`
	limit := httpguard.Middleware{
		Guards: guardsBy(t, says("{"+answer), client.Allow), Activity: "create_post", User: u1,
		Limit: func(*http.Request) guards.Numbers { return guards.Number(0) },
	}
	w := serve(t, limit)
	if want := `{"title":"Too Many Requests","status":429,` + answer; w.Code != http.StatusTooManyRequests || w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	if h := w.Header(); h.Get("RateLimit") != "" || h.Get("RateLimit-Policy") != "" || h.Get("Retry-After") != "" {
		t.Errorf("the headers %v", h)
	}
	limit.Limit, limit.Request = nil, func(*http.Request) client.Request { return client.Request{Tier: "premium"} }
	if after := serve(t, limit).Header().Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After is %q for a tier, which is no number, want 1", after)
	}
}

// A block ends, whichever number the request has.
func TestABlockBesideALimitHasARetryAfter(t *testing.T) {
	w := serve(t, httpguard.Middleware{
		Guards:   guardsBy(t, says(`{"allowed":false,"reason":"blocked","userId":"u1","activity":"create_post","op":"check","waitTime":3600000,"granted":0}`), client.Allow),
		Activity: "create_post", User: u1, Limit: func(*http.Request) guards.Numbers { return guards.Number(500) },
	})
	if got := w.Header().Get("Retry-After"); got != "3600" {
		t.Errorf("Retry-After is %q, want 3600", got)
	}
}

func TestOnlyAnAnswerLetsARequestThrough(t *testing.T) {
	with := func(o client.OnOutage) func(*http.Request) client.Request {
		return func(*http.Request) client.Request { return client.Request{OnOutage: o} }
	}
	deadline := down{context.DeadlineExceeded}
	mistake := down{errors.New("unsupported protocol scheme")}
	const outage = `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Unavailable","status":503,"detail":"Please try again later."}`
	const failed = `{"title":"Internal Server Error","status":500}`
	for name, tt := range map[string]struct {
		limit  httpguard.Middleware
		status int
		body   string
		retry  string
	}{
		"outage, allow":            {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Allow), User: u1}, http.StatusTeapot, "", ""},
		"outage, deny":             {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Deny), User: u1}, http.StatusServiceUnavailable, outage, "1"},
		"outage, allow here":       {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Deny), User: u1, OnOutage: client.Allow}, http.StatusTeapot, "", ""},
		"outage, deny here":        {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Allow), User: u1, OnOutage: client.Deny}, http.StatusServiceUnavailable, outage, "1"},
		"outage, deny by Request":  {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Allow), User: u1, Request: with(client.Deny)}, http.StatusServiceUnavailable, outage, "1"},
		"outage, both":             {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Allow), User: u1, Request: with(client.Allow), OnOutage: client.Deny}, http.StatusServiceUnavailable, outage, "1"},
		"outage, another value":    {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Allow), User: u1, OnOutage: "open"}, http.StatusInternalServerError, failed, ""},
		"from memory":              {httpguard.Middleware{Guards: guardsBy(t, memory, client.Deny), User: u1}, http.StatusTeapot, "", ""},
		"from memory, denied here": {httpguard.Middleware{Guards: guardsBy(t, memory, client.Allow), User: u1, OnOutage: client.Deny}, http.StatusServiceUnavailable, outage, "1"},
		"attempt, outage, denied":  {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Allow), User: u1, CountIf: unauthorized, OnOutage: client.Deny}, http.StatusServiceUnavailable, outage, "1"},
		"attempt, memory, denied":  {httpguard.Middleware{Guards: guardsBy(t, memory, client.Allow), User: u1, CountIf: unauthorized, OnOutage: client.Deny}, http.StatusServiceUnavailable, outage, "1"},
		"mistake":                  {httpguard.Middleware{Guards: guardsBy(t, mistake, client.Allow), User: u1}, http.StatusInternalServerError, failed, ""},
		"no user":                  {httpguard.Middleware{Guards: guardsBy(t, deadline, client.Allow), User: func(*http.Request) string { return "" }}, http.StatusInternalServerError, failed, ""},
		"skipped": {httpguard.Middleware{Guards: guardsBy(t, mistake, client.Allow), Skip: func(*http.Request) bool { return true }}, http.StatusTeapot,
			"", ""},
		"the app's own refusal": {httpguard.Middleware{
			Guards: guardsBy(t, deadline, client.Deny), User: u1,
			Refused: func(w http.ResponseWriter, _ *http.Request, d client.Decision) {
				http.Error(w, string(d.Reason), http.StatusConflict)
			},
		}, http.StatusConflict, "unavailable", ""},
		"the app's own failure": {httpguard.Middleware{
			Guards: guardsBy(t, deadline, client.Deny), User: func(*http.Request) string { return "" },
			Failed: func(w http.ResponseWriter, _ *http.Request, err error) {
				_, _ = io.WriteString(w, err.Error())
			},
		}, http.StatusOK, "httpguard: User returned no user id. Authenticate the user first, or let the request pass with Skip.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.limit.Activity = "create_post"
			w := serve(t, tt.limit)
			if got := strings.TrimSpace(w.Body.String()); w.Code != tt.status || got != tt.body || w.Header().Get("Retry-After") != tt.retry {
				t.Errorf("%d %v %s, want %d %s", w.Code, w.Header(), got, tt.status, tt.body)
			}
		})
	}
}

// serve sends a request to a limited handler, which answers 418.
func serve(t *testing.T, limit httpguard.Middleware) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	teapot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	limit.Handler(teapot).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	return w
}

// A handler that fails has still used the action.
func TestAHandlerThatFailsGivesNothingBack(t *testing.T) {
	g := guardsBy(t, inMemory(cricket.Posts), client.Allow)
	limit := httpguard.Middleware{Guards: g, Activity: "create_post", User: u1}
	failing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) })
	limit.Handler(failing).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	if d, err := g.Status(t.Context(), "create_post", client.Request{UserID: "u1"}); err != nil || d.ActivityCount != 1 {
		t.Errorf("%+v, %v, want one action counted", d, err)
	}
}

func TestAMistakeIsLoggedUnlessTheUserHasGone(t *testing.T) {
	log := testkit.DefaultLog(t)
	limit := httpguard.Middleware{
		Guards: guardsBy(t, down{errors.New("unsupported protocol scheme")}, client.Allow), Activity: "create_post", User: u1,
	}
	handler := limit.Handler(http.NotFoundHandler())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, "/", http.NoBody))
	if log.String() != "" {
		t.Errorf("the user has gone, and the log has %s", log)
	}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	if !strings.Contains(log.String(), "unsupported protocol scheme") || strings.Contains(log.String(), "u1") {
		t.Errorf("the log has %s", log)
	}
}

// T in RateLimit follows the guard's clock, also that of a limiter in this process, which a test
// moves.
func TestTheHeadersFollowTheClockOfALimiter(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 15, 0, time.UTC)
	page := []guards.Guard{{Name: "posts-guard", Message: "m", Activities: []guards.Activity{{Name: "create_post", Limit: "1/1m"}}}}
	l := testkit.Must(limiter.InMemory(page, func() time.Time { return now }))(t)
	limit := httpguard.Middleware{Guards: testkit.Must(client.New(t.Context(), client.Options{Local: l}))(t), Activity: "create_post", User: u1}
	for i, want := range []string{"r=0;t=45", "r=0;t=45", "r=0;t=15"} {
		if i == 2 {
			now = now.Add(30 * time.Second)
		}
		if w := serve(t, limit); w.Header().Get("RateLimit") != `"create_post";`+want {
			t.Errorf("request %d: %d %v, want %s", i+1, w.Code, w.Header(), want)
		}
	}
}
