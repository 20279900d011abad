package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/agentd"
	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/wiring"
	devconsole "github.com/cric-talk/guards/internal/workbench/console"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
	"github.com/cric-talk/guards/internal/workbench/words"
)

type serveCommand struct {
	Addr        string `default:"127.0.0.1:3001" placeholder:"HOST:PORT" help:"The address to listen on (${default}). There is no authentication, so keep it on loopback."`
	CreateTable bool   `help:"Create the table first if it does not exist. Goes with --store dynamodb."`
	Fail        string `enum:"none,unavailable,throttled,slow" default:"none" help:"Act as if the table were unavailable (nothing answers at its address), throttled (DynamoDB refuses each request) or slow (no answer comes within DECISION_TIMEOUT). No table is needed. Default: none."`
	Clock       bool   `help:"Let an app's tests move the guards' clock: POST /clock with {\"move\": MS}, {\"to\": MS} or {\"reset\": true}. Only this machine can."`
	JSON        bool   `name:"json" help:"Print each invocation as one line of JSON."`
	storeFlags
}

func (serveCommand) Help() string {
	return `This serves every guard and cleanup through Lambda's Invoke API, for an
application under development. The guards read MODE, ON_OUTAGE, ON_LIMIT,
DECISION_TIMEOUT and BYPASS_ROLES as the deployed functions do. Open the address
in a browser for a console: it shows each answer, and moves the guards' clock.
Only an address of this machine has the console.

A request with the header Guards-Token is answered as an agent answers it, so an
application that runs with GUARDS_AGENT=http://127.0.0.1:3001 needs no AWS SDK
and no table. Examples:
  guards serve
  MODE=shadow guards serve
  guards serve --fail unavailable
  ON_OUTAGE=deny guards serve --fail slow
  guards serve --clock
  guards serve --store dynamodb --endpoint http://127.0.0.1:8000 --create-table
  aws lambda invoke --endpoint-url http://127.0.0.1:3001 --function-name {guard} \
    --cli-binary-format raw-in-base64-out \
    --payload '{"userId": "u1", "activity": "{activity}"}' answer.json
  curl -d '{"userId": "u1", "activity": "{activity}"}' http://127.0.0.1:3001/{guard}`
}

// The functions' timeouts, as in template.yaml.
const (
	guardTimeout   = 10 * time.Second
	cleanupTimeout = 300 * time.Second
)

// Run serves until ctx ends.
func (c *serveCommand) Run(ctx context.Context, env session) error {
	settings, err := wiring.Function.Settings()
	if err != nil {
		return err
	}
	token, err := agentd.Token()
	if err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	clock := devconsole.NewClock(env.now)
	env.now = clock.Now
	log := &serveLog{env: env, json: c.JSON}
	api := newAPI(&settings, c.store, env, log.observe)
	address := listener.Addr().String()
	server := newServer(besideApp(api, env, token, api))
	about := "the console is off, because --addr " + address + " is not an address of this machine only, such as 127.0.0.1:3001"
	if c.Clock && !devconsole.Loopback(address) {
		return errors.New("--clock needs an --addr of this machine only, such as 127.0.0.1:3001")
	}
	if devconsole.Loopback(address) {
		server = c.withConsole(env, api, clock, address, token)
		about = "the console for development is at http://" + address + "/; only this machine can open it"
	}
	env.note(fmt.Sprintf("serving %s on http://%s, counting in %s%s; press Ctrl-C to stop",
		strings.Join(slices.Sorted(maps.Keys(api.Functions)), ", "), address, c.countsIn(), variables()))
	env.note(about)

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), guardTimeout)
	defer cancel()
	err = server.Shutdown(last)
	api.Wait()
	env.note("stopped after " + plural(log.served.Load(), "request"))
	return cmp.Or(err, errInterrupted)
}

// prepare opens the store, and creates the table if --create-table is given.
// Then it checks that the table can be reached. With --fail there is no table.
func (c *serveCommand) prepare(ctx context.Context) error {
	if c.Fail != "none" {
		if c.CreateTable || !c.inMemory() || c.given() {
			return errors.New("--fail needs no table: leave out --create-table, --store dynamodb, --table, --endpoint and --region")
		}
		c.store = outage(c.Fail).open("rateLimit")
		return nil
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if c.CreateTable {
		if c.inMemory() {
			return errors.New("--create-table goes with --store dynamodb")
		}
		if err := c.store.dynamo.Create(ctx); err != nil {
			return input.NewUnavailable(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := c.store.Read(ctx, ratelimit.Key{UserID: " probe", Activity: "probe"}); err != nil {
		return input.NewUnavailable(err)
	}
	return nil
}

// countsIn names the store.
func (c *serveCommand) countsIn() string {
	switch {
	case c.Fail != "none":
		return "a table that is " + c.Fail + ", because of --fail"
	case c.inMemory():
		return "memory"
	}
	return "the table " + c.opened.Table
}

// settings are the variables that wiring.Environment.Settings reads.
var settings = []string{"MODE", "ON_OUTAGE", "ON_LIMIT", "DECISION_TIMEOUT", "BYPASS_ROLES", "METRICS"}

// variables lists the settings that are set, so that nobody overlooks a
// variable that a shell still has from earlier.
func variables() (set string) {
	for _, name := range settings {
		if value, ok := os.LookupEnv(name); ok {
			set += fmt.Sprintf(", %s=%s", name, value)
		}
	}
	return set
}

// withConsole returns the server for api, with the console. Other machines must
// not reach the address. Clock is the guards' clock.
func (c *serveCommand) withConsole(env session, api *invokeapi.Server, clock *devconsole.Clock, address, token string) *http.Server {
	page := &devconsole.Console{
		API: api, Guards: env.guards, Address: address, CountsIn: c.countsIn() + variables(), Clock: clock, Fixed: c.fixedClock(), ForTests: c.Clock, Wait: wait,
	}
	for name, f := range api.Functions {
		if h, ok := f.Handler.(*guard.Handler); ok {
			f.Handler = page.Watch(name, h, heldBy(h))
			api.Functions[name] = f
		}
	}
	server := newServer(besideApp(api, env, token, page))
	server.RegisterOnShutdown(page.Close)
	return server
}

// heldBy returns what the console asks about the leases of a guard.
func heldBy(h *guard.Handler) devconsole.Held {
	return func(whose, activity string) (left, until int64) {
		a, _ := h.Guard.Activity(activity)
		if a.Part(subjectOf(whose)).Limit.IsZero() {
			return 0, 0
		}
		now := h.Limiter.Clock().UnixMilli()
		return h.Limiter.Memory.Recall(keyOf(whose, a, now)).Held(now)
	}
}

// fixedClock returns why the clock can't be moved, or an empty text. Others
// count in a table that is not on this machine, and they don't share the clock.
func (c *serveCommand) fixedClock() string {
	if c.inMemory() {
		return ""
	}
	if u, err := url.Parse(c.address); err == nil && invokeapi.LoopbackHost(u.Hostname()) {
		return ""
	}
	return "The clock can't be moved, because the table is not on this machine."
}

// newAPI wires every function as package lambdafn does, in one process.
func newAPI(settings *wiring.Settings, store store, env session, observe func(invokeapi.Invocation)) *invokeapi.Server {
	api := &invokeapi.Server{Functions: make(map[string]invokeapi.Function), Observe: observe}
	logger := slog.New(invokeapi.LogHandler())
	run := &cleanup.Cleanup{Table: store.table, Live: store.live, Guards: env.guards, Now: env.now, Log: logger.With("service", "cleanup")}
	var changed *live.Follower // all guards share it, because they run in one process
	if store.live != nil {
		changed = &live.Follower{Source: store.live, Guards: env.guards, Log: logger, Now: env.now}
	}
	for _, g := range env.guards {
		h := settings.Handler(g, store)
		h.NewID = lambdafn.InvocationID
		h.Log, h.Limiter.Now, h.Live, h.Tiers = logger.With("service", g.Name), env.now, changed, env.guards.TierNames()
		api.Functions[g.Name] = invokeapi.Function{URL: true, Timeout: guardTimeout, Handler: h}
	}
	api.Functions["cleanup"] = invokeapi.Function{Timeout: cleanupTimeout, Handler: run}
	return api
}

// arrival is how long a request's header may take to arrive, and then its body.
const arrival = 10 * time.Second

// newServer returns a server that ends a request which does not arrive. Its
// Shutdown does not wait for such a request, and closes unused connections at
// once. [http.Server] alone waits 5 s for a connection without any request yet,
// and forever for a body.
func newServer(h http.Handler) *http.Server {
	var unused sync.Map
	stopping, stop := context.WithCancel(context.Background())
	s := &http.Server{Handler: arriving(stopping, h), ReadHeaderTimeout: arrival, ConnState: func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			unused.Store(c, nil)
		} else {
			unused.Delete(c)
		}
	}}
	s.RegisterOnShutdown(func() {
		stop()
		unused.Range(func(c, _ any) bool {
			_ = c.(net.Conn).Close()
			return true
		})
	})
	return s
}

// arriving returns h with a limit for the time that a body takes to arrive. If
// stopping ends, that time is over. Functions don't notice that later reads of
// the connection fail too, because their contexts don't end with it.
func arriving(stopping context.Context, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(arrival))
			defer context.AfterFunc(stopping, func() { _ = control.SetReadDeadline(time.Now()) })()
		}
		h.ServeHTTP(w, r)
		_, _ = io.CopyN(io.Discard, r.Body, 256<<10) // as the server does, but stopping ends it
	})
}

// A serveLog writes a line for each invocation. It is safe for concurrent use.
type serveLog struct {
	env    session
	json   bool       // one line of JSON on standard output; otherwise a line for people
	mu     sync.Mutex // held while a line is written
	served atomic.Int64
}

// A served is an invocation as JSON.
type served struct {
	At       time.Time       `json:"at"`
	Function string          `json:"function"`
	Status   int             `json:"status,omitzero"` // over HTTP, or if no function ran
	Answer   json.RawMessage `json:"answer,omitzero"`
	Error    string          `json:"error,omitzero"`
}

func (l *serveLog) observe(i invokeapi.Invocation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served.Add(1)
	s := l.read(i)
	if l.json {
		_ = l.env.printLine(s)
		return
	}
	_, _ = fmt.Fprintf(l.env.err, "%s  %-18s  %s\n", s.At.Format(time.TimeOnly), s.Function, l.env.words(s))
}

// read returns what an invocation came to. It takes the answer or the error out
// of the response that a Function URL sends.
func (l *serveLog) read(i invokeapi.Invocation) served {
	s := served{At: l.env.now().UTC(), Function: i.Function, Status: i.Status, Answer: i.Payload}
	if strings.ContainsFunc(s.Function, func(c rune) bool { return c <= ' ' || c > '~' }) {
		s.Function = input.Show(s.Function) // the caller can send anything
	}
	if i.Err != nil {
		s.Answer, s.Error = nil, i.Err.Error()
		return s
	}
	var response struct {
		StatusCode int
		Body       string
	}
	if json.Unmarshal(i.Payload, &response) != nil || response.StatusCode == 0 {
		return s
	}
	s.Status, s.Answer = response.StatusCode, json.RawMessage(response.Body)
	var problem struct{ Reason, Title, Detail string }
	if json.Unmarshal(s.Answer, &problem) == nil && problem.Reason == "" { // not an answer of the guard
		s.Answer, s.Error = nil, cmp.Or(problem.Detail, problem.Title)
	}
	return s
}

// words returns an invocation for people.
func (c session) words(s served) string {
	if s.Error != "" {
		status := ""
		if s.Status != 0 {
			status = fmt.Sprintf(" %d", s.Status)
		}
		return c.paint(red, "error"+status) + " " + visible(s.Error)
	}
	var a guards.Decision
	if json.Unmarshal(s.Answer, &a) != nil || a.Reason == "" {
		return strings.TrimSpace(string(s.Answer)) // cleanup's
	}
	text := fmt.Sprintf("%s %s: %s, %s", a.Op, a.Activity, c.verdict(a.Allowed, a.Reason), a.Reason)
	if a.Limit > 0 {
		text += fmt.Sprintf(", %d/%d used", a.ActivityCount, a.Limit)
		if a.LimitedBy != "" { // such as room; it has no id
			text += " of " + visible(a.LimitedBy)
		}
		text += words.Reached(a.Crossed, a.Locked)
	}
	if a.WaitTime > 0 {
		text += ", wait " + waitMs(a.WaitTime)
	}
	return text
}

// besideApp answers a request with the header Guards-Token as an agent does, and leaves the
// others to rest. So an app that asks an agent can be tried without one. Token is
// GUARDS_AGENT_TOKEN.
func besideApp(api *invokeapi.Server, env session, token string, rest http.Handler) http.Handler {
	agent := &agentd.Handler{Token: token}
	for _, g := range env.guards {
		agent.Add(g, invokeapi.Beside{Server: api, Name: g.Name})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Values(agentd.TokenHeader) == nil {
			rest.ServeHTTP(w, r)
			return
		}
		agent.ServeHTTP(w, r)
	})
}
