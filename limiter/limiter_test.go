package limiter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
	"github.com/cric-talk/guards/limiter"
	"github.com/cric-talk/guards/limits"
)

// onTable returns a limiter on a table, and what it logs and measures.
func onTable(t *testing.T, endpoint, table string, o limiter.Options) (l *limiter.Limiter, log, output *bytes.Buffer) {
	t.Helper()
	log, output = new(bytes.Buffer), new(bytes.Buffer)
	cfg := dynamotest.Config(endpoint)
	o.Table, o.Config, o.Log, o.Output = table, &cfg, slog.New(slog.NewJSONHandler(log, nil)), output
	o.DecisionTimeout = 5 * time.Second // so that a slow test machine causes no outage
	return testkit.Must(limiter.New(t.Context(), limits.All, o))(t), log, output
}

// The deployed function and the limiter answer the same events on the same table alike: what
// one of them counts, the other one knows.
func TestALimiterAnswersAsTheFunctionDoes(t *testing.T) {
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	l, _, _ := onTable(t, endpoint, table, limiter.Options{})
	start := func(function string) *lambdatest.Instance {
		return lambdatest.Start(t, lambdatest.Build(t, "./functions/"+function), "TABLE_NAME="+table, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "DECISION_TIMEOUT=5s")
	}
	posts, pins, chat := start("posts-guard"), start("pins-guard"), start("chat-guard")
	for _, tt := range []struct {
		function *lambdatest.Instance
		r        guards.Request
	}{
		{posts, guards.Request{Activity: "create_post", Count: 3}},
		{posts, guards.Request{Activity: "create_post", Op: guards.Status}},
		{posts, guards.Request{Activity: "create_post", Count: 5, Tier: "premium"}},
		{posts, guards.Request{Activity: "like"}},
		{posts, guards.Request{Activity: "create_post", Roles: []string{"admin"}}},
		{posts, guards.Request{Activity: "create_post", Count: 20, Partial: true}},
		{posts, guards.Request{Activity: "create_post"}},
		{posts, guards.Request{Activity: "create_post", RequestID: "same"}},
		{posts, guards.Request{Activity: "create_post", Op: guards.Reset}},
		{pins, guards.Request{Activity: "pin", Count: 12}},
		{chat, guards.Request{Activity: "send_message"}},
		{chat, guards.Request{Activity: "send_message"}},
	} {
		ask := func(user string, here bool) guards.Decision {
			tt.r.UserID = user
			if here {
				return testkit.Must(l.Decide(t.Context(), tt.r))(t)
			}
			event := testkit.Must(json.Marshal(tt.r))(t)
			answer := tt.function.Invoke(t, string(event))
			var d guards.Decision
			if err := json.Unmarshal(answer.Payload, &d); err != nil || answer.ErrorType != "" {
				t.Fatalf("%s: %s, %v", event, answer.Payload, err)
			}
			again, err := json.Marshal(d)
			if err != nil || string(again) != string(answer.Payload) {
				t.Errorf("%s becomes %s, %v", answer.Payload, again, err)
			}
			return d
		}
		for _, first := range []bool{true, false} { // each way asks about a user of its own, and then about the other's
			here, there := ask("local", first), ask("remote", !first)
			there.UserID = here.UserID
			for _, d := range []*guards.Decision{&here, &there} { // what depends on the moment
				if d.At != 0 {
					d.At, d.RequestID = 1, "r"
				}
				d.ResetAt, d.WindowKey, d.HeldUntil, d.WaitTime = min(d.ResetAt, 1), min(d.WindowKey, 1), min(d.HeldUntil, 1), (d.WaitTime+59_999)/60_000
			}
			if diff := cmp.Diff(there, here); diff != "" {
				t.Errorf("%+v (-function +limiter):\n%s", tt.r, diff)
			}
		}
	}
}

// The plain names of variables belong to the app.
func TestTheAppsOwnVariablesAreNotRead(t *testing.T) {
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	for name, value := range map[string]string{
		"TABLE_NAME": "of-the-app", "MODE": "off", "ON_OUTAGE": "wrong", "POWERTOOLS_METRICS_NAMESPACE": "App", "POWERTOOLS_SERVICE_NAME": "app", "BYPASS_ROLES": "user",
		"GUARDS_TABLE_NAME": table,
	} {
		t.Setenv(name, value)
	}
	l, log, output := onTable(t, endpoint, "", limiter.Options{})
	for range 2 {
		if d, err := l.Decide(t.Context(), guards.Request{UserID: "u1", Activity: "create_post", Count: 10, Roles: []string{"user"}}); err != nil || d.Limit != 10 {
			t.Fatalf("%+v, %v, want a decision by the table", d, err)
		}
	}
	testkit.OK(t, l.Close(t.Context()))
	if got := output.String(); !strings.Contains(got, `"Namespace":"Guards"`) || !strings.Contains(got, `"Guard":"posts-guard"`) || !strings.Contains(got, `"Refused":1`) {
		t.Errorf("the metrics are %s", got)
	}
	if got := log.String(); !strings.Contains(got, `"service":"posts-guard"`) || !strings.Contains(got, `"msg":"refused"`) || strings.Contains(got, `"u1"`) {
		t.Errorf("the log is %s", got)
	}
}

func TestWhatALimiterRefuses(t *testing.T) {
	l := testkit.Must(limiter.InMemory(limits.All, nil))(t)
	for want, r := range map[string]guards.Request{
		`activity is "publish", want one that the page of limits names`: {UserID: "u1", Activity: "publish"},
		"userId is missing": {Activity: "create_post"},
		"count is -1, want a whole number of at least 1":         {UserID: "u1", Activity: "create_post", Count: -1},
		"count is 11, want at most 10":                           {UserID: "u1", Activity: "create_post", Count: 11},
		`op is "cheque", want one of`:                            {UserID: "u1", Activity: "create_post", Op: "cheque"},
		"at is -5, want":                                         {UserID: "u1", Activity: "create_post", Op: guards.Release, At: -5, RequestID: "r"},
		"readyAt is -5, want a whole number of at least 1":       {UserID: "u1", Activity: "update_member_role", ReadyAt: -5},
		"job goes only to a function: ask jobs-guard by Invoke":  {UserID: "u1", Activity: "update_member_role", Job: json.RawMessage(`{}`)},
		"subjects goes only with activities that have subjects":  {UserID: "u1", Activity: "create_post", Subjects: map[string]string{"room": "r"}},
		"partial does not go with requestId on a check, because": {UserID: "u1", Activity: "create_post", Partial: true, RequestID: "r"},
	} {
		d, err := l.Decide(t.Context(), r)
		if !errors.Is(err, guards.ErrValidation) || !strings.HasPrefix(err.Error(), want) || d.Allowed {
			t.Errorf("%+v: %+v, %v, want %s", r, d, err, want)
		}
	}
}

// With OnOutage deny, an outage is an error that never lets anybody through, and with allow,
// this instance's memory decides. The option wins over the variable.
func TestAnOutageOfALimiter(t *testing.T) {
	for on, check := range map[string]func(d guards.Decision, err error) bool{
		"allow": func(d guards.Decision, err error) bool {
			return err == nil && d.Allowed && d.Reason == guards.Unavailable
		},
		"deny": func(d guards.Decision, err error) bool { return errors.Is(err, guards.ErrUnavailable) && !d.Allowed },
	} {
		t.Setenv("GUARDS_ON_OUTAGE", map[string]string{"allow": "deny", "deny": "allow"}[on])
		cfg := dynamotest.Config("http://127.0.0.1:1")
		l := testkit.Must(limiter.New(t.Context(), limits.All, limiter.Options{
			Config: &cfg, OnOutage: on, DecisionTimeout: 300 * time.Millisecond, Metrics: "off", Log: slog.New(slog.DiscardHandler),
		}))(t)
		if d, err := l.Decide(t.Context(), guards.Request{UserID: "u1", Activity: "create_post"}); !check(d, err) {
			t.Errorf("%s: %+v, %v", on, d, err)
		}
		g := testkit.Must(client.New(t.Context(), client.Options{Local: l, Warn: func(error) {}}))(t)
		d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
		if err != nil || d.Allowed != (on == "allow") || (d.Outage != nil) != (on == "deny") {
			t.Errorf("%s, by the client: %+v, %v", on, d, err)
		}
	}
}

// The user leaves while the table is asked. The decision goes on, and is no outage.
func TestAUserWhoLeavesIsNoOutage(t *testing.T) {
	table := testkit.Must(url.Parse(dynamotest.Endpoint(t)))(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave()
		httputil.NewSingleHostReverseProxy(table).ServeHTTP(w, r)
	}))
	defer server.Close()
	l, log, _ := onTable(t, server.URL, dynamotest.Table(t), limiter.Options{})
	r := guards.Request{UserID: "u1", Activity: "create_post"}
	if d, err := l.Decide(ctx, r); err != nil || d.Reason != guards.OK || log.Len() > 0 {
		t.Errorf("%+v, %v, want ok\n%s", d, err, log)
	}
	if _, err := l.Decide(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("the error of the next decision is %v, want the context's", err)
	}
}

// A caller with little time left says nothing about the table. If it were an outage, each process
// would decide alone, for everybody.
func TestACallerInAHurryIsNoOutage(t *testing.T) {
	l, log, _ := onTable(t, dynamotest.Endpoint(t), dynamotest.Table(t), limiter.Options{OnOutage: "deny"})
	for _, left := range []time.Duration{5 * time.Millisecond, time.Minute} {
		ctx, stop := context.WithTimeout(t.Context(), left)
		defer stop()
		d, err := l.Decide(ctx, guards.Request{UserID: "u1", Activity: "create_post"})
		if early := errors.Is(err, context.DeadlineExceeded); !early && (err != nil || d.Reason != guards.OK) || log.Len() > 0 {
			t.Errorf("with %s left: %+v, %v, want ok\n%s", left, d, err, log)
		}
	}
}

// The options win over the variables, also an empty list of roles. Without an option, the variable
// counts. There is no table, so what is counted is unavailable.
func TestTheOptionsWin(t *testing.T) {
	t.Setenv("GUARDS_METRICS_NAMESPACE", "Theirs")
	for name, tt := range map[string]struct {
		variable, value string
		o               limiter.Options
		reason          guards.Reason
		namespace       string
	}{
		"the mode of the variable":    {"GUARDS_MODE", "off", limiter.Options{}, guards.Unlimited, "Theirs"},
		"the mode of the option":      {"GUARDS_MODE", "off", limiter.Options{Mode: "enforce"}, guards.Unavailable, "Theirs"},
		"the roles of the variable":   {"GUARDS_BYPASS_ROLES", "user", limiter.Options{}, guards.Bypassed, "Theirs"},
		"the roles of the option":     {"GUARDS_BYPASS_ROLES", "user", limiter.Options{BypassRoles: []string{"admin"}}, guards.Unavailable, "Theirs"},
		"no roles":                    {"GUARDS_BYPASS_ROLES", "user", limiter.Options{BypassRoles: []string{}}, guards.Unavailable, "Theirs"},
		"the namespace of the option": {"GUARDS_MODE", "enforce", limiter.Options{MetricsNamespace: "Mine"}, guards.Unavailable, "Mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(tt.variable, tt.value)
			l, _, output := onTable(t, "http://127.0.0.1:1", "", tt.o)
			d, err := l.Decide(t.Context(), guards.Request{UserID: "u1", Activity: "create_post", Roles: []string{"user"}})
			if err := errors.Join(err, l.Close(t.Context())); err != nil || d.Reason != tt.reason {
				t.Errorf("%s, %v, want %s", d.Reason, err, tt.reason)
			}
			if want := `"Namespace":"` + tt.namespace + `"`; !strings.Contains(output.String(), want) {
				t.Errorf("the metrics are %s, want %s", output, want)
			}
		})
	}
}

// Wrong settings are told before the first decision, all mistakes of a page at once.
func TestNewRefuses(t *testing.T) {
	cfg := dynamotest.Config("http://127.0.0.1:1")
	for want, o := range map[string]limiter.Options{
		`Mode is "of", want enforce or shadow or off`:                         {Config: &cfg, Mode: "of"},
		`OnOutage is "alow", want allow or deny`:                              {Config: &cfg, OnOutage: "alow"},
		`Metrics is "none", want activity or guard or off`:                    {Config: &cfg, Metrics: "none"},
		`DecisionTimeout is "6s", want a duration such as 250ms, at most 5s`:  {Config: &cfg, DecisionTimeout: 6 * time.Second},
		`DecisionTimeout is "-1s", want a duration such as 250ms, at most 5s`: {Config: &cfg, DecisionTimeout: -time.Second},
		`Table is "a b", want 3 to 255 letters`:                               {Config: &cfg, Table: "a b"},
	} {
		if l, err := limiter.New(t.Context(), limits.All, o); l != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	wrong := []guards.Guard{{Name: "g", Message: "m", Activities: []guards.Activity{{Name: "a"}, {Name: "b"}}}}
	if l, err := limiter.InMemory(wrong, nil); l != nil || err == nil {
		t.Errorf("in memory: %v, want the mistakes", err)
	}
	if _, err := limiter.New(t.Context(), wrong, limiter.Options{Config: &cfg}); err == nil || strings.Count(err.Error(), "it has no limit") != 2 {
		t.Errorf("%v, want both mistakes", err)
	}
	t.Setenv("GUARDS_ON_OUTAGE", "never")
	if _, err := limiter.New(t.Context(), limits.All, limiter.Options{Config: &cfg}); err == nil || !strings.HasPrefix(err.Error(), "GUARDS_ON_OUTAGE is ") {
		t.Errorf("%v, want an error that names the variable", err)
	}
}

// A client of a limiter knows its activities with their windows, and has its own errors. The
// examples here and those of package client, which ask a limiter, are about everything else.
func TestTheClientWithALimiter(t *testing.T) {
	l := testkit.Must(limiter.InMemory(limits.All, nil))(t)
	g := testkit.Must(client.New(t.Context(), client.Options{Local: l}))(t)
	testkit.NoError(t, g.Ready(t.Context()))
	if a, ok := g.Find("create_post"); !ok || a.Guard != "posts-guard" || a.Window != time.Minute {
		t.Errorf("%+v, %v", a, ok)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := g.Check(ended, "create_post", client.Request{UserID: "u1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's own error", err)
	}
	if _, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u 1"}); !errors.Is(err, client.ErrValidation) {
		t.Errorf("%v, want an ErrValidation", err)
	}
	for _, o := range []client.Options{{Local: l, MaxTries: 2}, {Local: l, OnOutage: client.Allow}, {Local: l, Prefix: "dev-"}} {
		if _, err := client.New(t.Context(), o); !errors.Is(err, client.ErrConfiguration) {
			t.Errorf("%+v: %v, want an ErrConfiguration", o, err)
		}
	}
}
