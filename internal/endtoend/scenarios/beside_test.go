package scenarios_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A way is how a client asks the guards.
type way string

const (
	byInvoke way = "invoke" // Lambda's Invoke API
	byURL    way = "URL"    // Function URLs
	byAgent  way = "agent"  // an agent's port, with a token
	bySocket way = "socket" // an agent's socket, without a token
)

func (w way) isAgent() bool { return w == byAgent || w == bySocket }

// These are reasons for a scenario to leave out the agent.
const (
	ofLambda = "Lambda itself answers this, and no agent does"
	noProxy  = "no proxy is between an app and its agent, so this is another program: see beside"
	another  = "this is another program at the agent's address, which is another error: see beside"
	noAWS    = "an app that asks an agent needs neither a region nor credentials"
)

// token is what the agents with a port want.
const token = "a-token-of-the-scenarios"

// Only an agent has these scenarios. In most, it can't decide, or another program has its
// address, and no user may pass.
var beside = []scenario{
	mistake(scenario{name: "a wrong token", options: map[string]any{"token": "wrong"}}, step{requests: 1, message: "*Guards-Token is wrong*"}),
	mistake(scenario{name: "another program"}, step{faults: times(1, garbage), requests: 1, message: "Another program than *"}),
	mistake(scenario{name: "503 of another program"}, step{faults: times(1, unavailable), requests: 1, message: "Another program than *"}),
	mistake(scenario{name: "a redirect of another program"}, step{faults: times(1, elsewhere), requests: 1, message: "Another program than *"}),
	mistake(scenario{name: "a mistake in the agent's settings", options: map[string]any{"prefix": "broken-"}}, step{requests: 1, message: "*GUARDS_MODE is \"nonsense\"*"}),
	{name: "an agent that is missing", mistake: true, options: map[string]any{"prefix": "missing-", "timeout": 1_000, "decisionTimeout": 500}, steps: []step{
		{call: status, requests: 0, class: "ConfigurationError", message: "No agent *answer*"},
		{call: check, requests: 0, class: "ConfigurationError", message: "No agent *answer*"},
	}},
	{name: "no list of activities", options: map[string]any{"noList": true}, counted: 2, steps: []step{
		{call: `{"call":"ready"}`, requests: 1}, // asks for the agent's health
		{call: check, requests: 1, answer: fine},
		{call: fails, requests: 2, class: "SaveError", message: "*"},
		{call: write, requests: 1, answer: `{"allowed":true,"limit":3}`},
		{call: `{"call":"check","activity":"create_pots"}`, requests: 1, class: "ValidationError", message: `*activity is "create_pots", want one that the page of limits names*`},
	}},
}

// elsewhere redirects to an address that would allow.
func elsewhere(w http.ResponseWriter, r *http.Request, _ func()) {
	http.Redirect(w, r, "/posts-guard", http.StatusTemporaryRedirect)
}

// runs reports whether a scenario is meant for a way. A socket moves the same bytes as a
// port, so scenarios that wait for the clock run only there.
func (s scenario) runs(by way) bool {
	switch by {
	case byInvoke:
		return s.invoke
	case byURL:
		return s.url
	case byAgent:
		return s.noAgent == ""
	case bySocket:
		return s.noAgent == "" && !s.timed()
	}
	return false
}

// timed reports whether the scenario depends on the clock.
func (s scenario) timed() bool {
	return slices.ContainsFunc(s.steps, func(s step) bool { return s.most != 0 || s.pause != 0 })
}

// besideApp starts agents of this repository's guards and forum-guard, in several forms by prefix, each
// once with a port and once with a socket:
//
//	(none)    counts in the table, as posts-guard's function does
//	deny-     its table is away, and it has GUARDS_ON_OUTAGE=deny
//	alone-    its table is away, and it decides from memory
//	broken-   has a mistake in its settings
//	missing-  is not there
//
// The only function is posts-guard, which shares the table. The app's environment contains no
// AWS variables.
func besideApp(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{table: dynamotest.Table(t), functions: map[string]*lambdatest.Instance{}, agents: map[way]map[string]string{}, env: withoutAWS(t)}
	away := tableAway(t)
	here := "AWS_ENDPOINT_URL_DYNAMODB=" + dynamotest.Endpoint(t)
	c.functions["posts-guard"] = lambdatest.Start(t, lambdatest.Build(t, "./functions/posts-guard"), here, "DECISION_TIMEOUT=5s", "TABLE_NAME="+c.table)
	for _, by := range []way{byAgent, bySocket} {
		c.agents[by] = map[string]string{"missing-": missing(t, by)}
		for prefix, env := range map[string][]string{
			"":        {here, "GUARDS_DECISION_TIMEOUT=5s"},
			"deny-":   {away, "GUARDS_DECISION_TIMEOUT=250ms", "GUARDS_ON_OUTAGE=deny"},
			"alone-":  {away, "GUARDS_DECISION_TIMEOUT=250ms"},
			"broken-": {here, "GUARDS_MODE=nonsense"},
		} {
			c.agents[by][prefix] = c.front(t, by, append(env, "GUARDS_TABLE_NAME="+c.table, "GUARDS_BYPASS_ROLES=admin", "ROOM=required"))
		}
	}
	return c
}

// withoutAWS returns changes to the environment of an app that leave no AWS variables in it.
func withoutAWS(t *testing.T) map[string]string {
	t.Helper()
	changes := map[string]string{}
	for name := range environment(t, "") {
		if strings.HasPrefix(name, "AWS_") {
			changes[name] = ""
		}
	}
	return changes
}

// missing returns an address where nobody listens.
func missing(t *testing.T, by way) string {
	t.Helper()
	if by == bySocket {
		return "unix:" + filepath.Join(t.TempDir(), "missing.sock")
	}
	return "http://127.0.0.1:1"
}

// listens is in the line that an agent writes when it starts.
var listens = regexp.MustCompile(`"address":"([^"]+)"`)

// front starts an agent, and in front of it a server that passes each request on, unless a
// fault answers it. It returns the server's address for a client.
func (c *cloud) front(t *testing.T, by way, env []string) string {
	t.Helper()
	at := []string{"GUARDS_AGENT_ADDR=127.0.0.1:0", "GUARDS_AGENT_TOKEN=" + token}
	if by == bySocket {
		at = []string{"GUARDS_AGENT_ADDR=unix:" + filepath.Join(t.TempDir(), "agent.sock")}
	}
	agent := lambdatest.StartExtension(t, lambdatest.Build(t, "./internal/endtoend/scenarios/testdata/agent"), nil, slices.Concat(env, at)...)
	agent.Wait(t)
	started := listens.FindStringSubmatch(agent.Logs())
	if started == nil {
		t.Fatalf("the agent does not say where it listens:\n%s", agent.Logs())
	}
	network, address := "tcp", started[1]
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "localhost"})
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}},
		ErrorLog: log.New(io.Discard, "", 0), // a client that gives up
	}
	server := httptest.NewUnstartedServer(c.withFaults(unsigned, func(w http.ResponseWriter, r *http.Request, body []byte) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	if by == bySocket {
		_ = server.Listener.Close()
		path := filepath.Join(t.TempDir(), "front.sock")
		server.Listener = testkit.Must(new(net.ListenConfig).Listen(t.Context(), "unix", path))(t)
		server.Start()
		t.Cleanup(server.Close)
		return "unix:" + path
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// unsigned returns what is wrong with a request to an agent, which is not AWS.
func unsigned(r *http.Request, _ []byte) (problem string) {
	if r.Header.Get("Authorization") != "" {
		return "the request is signed"
	}
	return ""
}

// wake lets the agent answer the driver's process once. Until then, silence is a mistake.
func (c *cloud) wake(t *testing.T, d *driver, by way) {
	t.Helper()
	if !by.isAgent() {
		return
	}
	tr := &trial{T: t, cloud: c, by: by}
	d.do(t, map[string]any{"new": tr.newOptions()})
	if r := d.do(t, checkOfANewUser()); r.Answer["allowed"] != true || r.Answer["outage"] != nil {
		t.Fatalf("%+v", r)
	}
}

// tableAway returns the address of a table that does not answer, as a variable.
func tableAway(t *testing.T) string {
	t.Helper()
	away := dynamotest.NewProxy(t)
	away.Fail(math.MaxInt, dynamotest.Refuse)
	return "AWS_ENDPOINT_URL_DYNAMODB=" + away.URL()
}
