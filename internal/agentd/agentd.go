// Package agentd is the agent beside an app: the guards behind HTTP on this machine, as a
// Lambda extension or as a program next to the app's own.
//
// A [Handler] is its HTTP form, which guards serve has, too. [Run] is the program: it reads the
// settings, listens, and serves until it is told to end. In Lambda it never ends before the
// app's function does, whatever is wrong, because an extension that ends takes the function
// with it: see extension.go.
package agentd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/crash"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/wiring"
)

const usage = `guards-agent answers for the guards on this machine: POST / with an event decides it.
The variables GUARDS_* configure it, such as GUARDS_AGENT_ADDR and GUARDS_TABLE_NAME.

  guards-agent          serve until SIGTERM
  guards-agent health   exit with 0 if the agent answers and can decide, otherwise with 1
  guards-agent version  print the release of Guards in this program
`

// A Page returns a page of limits. Its error is a mistake in the limits.
type Page func() ([]guards.Guard, error)

// Run runs the program guards-agent with its arguments, and returns its exit status.
func Run(page Page, args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		_, _ = fmt.Fprintln(stderr, "guards-agent:", strings.ReplaceAll(err.Error(), "\n", "\nguards-agent: "))
		return 1
	}
	switch command := strings.Join(args, " "); command {
	case "":
	case "health":
		if err := health(context.Background()); err != nil {
			return fail(err)
		}
		return 0
	case "version", "--version":
		_, _ = fmt.Fprintln(stdout, "guards-agent", release())
		return 0
	case "help", "-h", "--help":
		_, _ = io.WriteString(stdout, usage)
		return 0
	default:
		_, _ = fmt.Fprintf(stderr, "guards-agent: unknown arguments %q\n%s", command, usage)
		return 2
	}
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads must not end the agent
	a := newAgent(page, stdout)
	if api := os.Getenv("AWS_LAMBDA_RUNTIME_API"); api != "" {
		a.runInLambda(extension{api: api, name: name()})
		return 0
	}
	if err := a.run(); err != nil {
		return fail(err)
	}
	return 0
}

// release returns the release of Guards in this program, or devel.
func release() string { return cmp.Or(wiring.Version(), "devel") }

// name returns the name of the program's file. Lambda knows an extension by it.
func name() string {
	file, err := os.Executable()
	if err != nil {
		return "guards-agent"
	}
	return filepath.Base(file)
}

// An agent is one process.
type agent struct {
	config  config
	log     *slog.Logger
	handler *Handler
	traffic traffic
	flush   func() // writes the metrics that wait
	mistake error  // of the settings or of the limits
}

// newAgent reads the settings. It sends no requests.
func newAgent(page Page, output io.Writer) *agent {
	a := &agent{flush: func() {}}
	a.log = slog.New(slog.NewJSONHandler(output, &slog.HandlerOptions{ReplaceAttr: names}))
	panicked := func(value any, stack []byte) {
		a.service().Error("panic", slog.Any("error", value), slog.String("stack", string(stack)))
	}
	crash.Report(panicked)
	var wrong error
	a.config, wrong = readConfig()
	a.handler = &Handler{
		Token: a.config.token, AnyToken: a.config.noToken, Private: a.config.address.network == "unix", Panicked: panicked,
	}
	a.mistake = errors.Join(wrong, a.open(page, output))
	a.handler.Mistake = a.mistake
	return a
}

// service returns the log of the agent itself. Lines about a decision have the guard's name as
// service, as the lines of its function do.
func (a *agent) service() *slog.Logger { return a.log.With("service", "guards-agent") }

// names gives a line of log the names that Lambda's own lines have.
func names(groups []string, attr slog.Attr) slog.Attr {
	switch {
	case len(groups) > 0:
	case attr.Key == slog.TimeKey:
		attr.Key = "timestamp"
	case attr.Key == slog.MessageKey:
		attr.Key = "message"
	}
	return attr
}

// open makes the guards of the page. Its error has all mistakes.
func (a *agent) open(page Page, output io.Writer) error {
	var all limits.Guards
	read, wrongPage := page()
	if wrongPage == nil {
		all, wrongPage = limits.Link(read)
	}
	settings, wrongSettings := wiring.App.Settings()
	table, wrongTable := wiring.App.Table()
	cfg, wrongAWS := wiring.Configure(context.Background())
	if wrongAWS == nil && cfg.Region == "" {
		wrongAWS = errors.New("no AWS region is set: set AWS_REGION")
	}
	if err := errors.Join(wrongPage, wrongSettings, wrongTable, wrongAWS); err != nil {
		return err
	}
	to := metrics.Writer{W: output, Namespace: wiring.App.Namespace()}
	process := wiring.On(wiring.Open(cfg, table), all, settings, to, a.service())
	for _, g := range all {
		a.handler.Add(g, process.Handler(g, a.log.With("service", g.Name)))
	}
	a.flush = process.Flush
	return nil
}

// server returns the server of the agent.
func (a *agent) server() *http.Server {
	return &http.Server{
		Handler: a.traffic.counting(a.handler), ReadHeaderTimeout: arrival, MaxHeaderBytes: 16 << 10,
		DisableGeneralOptionsHandler: true, // it answers OPTIONS * without the mark
		ErrorLog:                     slog.NewLogLogger(a.service().Handler(), slog.LevelWarn),
	}
}

const (
	quiet   = 2 * time.Second  // without a request: the app has ended
	longest = 25 * time.Second // from SIGTERM on; containers are killed after 30 s
	last    = 5 * time.Second  // for requests that are still under way then
)

// run serves until a signal ends it. SIGTERM comes to an app and its agent at the same time,
// and the app can need decisions while it drains. SIGINT is of a person, who does not wait.
func (a *agent) run() error {
	if a.mistake != nil {
		return a.mistake
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	listener, err := a.config.address.listen(context.Background(), a.config.mode)
	if err != nil {
		return cantListen(a.config.address, err)
	}
	a.started(listener)
	server := a.server()
	failed := make(chan error, 1)
	go func() {
		defer crash.Contain()
		failed <- server.Serve(listener)
	}()
	select {
	case err := <-failed:
		return err
	case s := <-signals:
		if s == syscall.SIGTERM {
			a.traffic.drain(signals, quiet, longest)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), last)
	defer cancel()
	err = server.Shutdown(ctx)
	a.flush()
	return err
}

func cantListen(at Address, err error) error {
	return fmt.Errorf("the agent can't listen on GUARDS_AGENT_ADDR, %s: %w", at, err)
}

// started writes the one line of log at the start.
func (a *agent) started(l net.Listener) {
	at := l.Addr().String()
	if a.config.address.network == "unix" {
		at = a.config.address.String()
	}
	if a.mistake != nil {
		a.service().Error("the agent answers each request with this mistake", slog.String("address", at), slog.Any("error", a.mistake))
		return
	}
	a.service().Info("agent started", slog.String("address", at), slog.Int("guards", len(a.handler.guards)))
}

// health asks the agent at the configured address whether it can decide. The error says why
// not.
func health(ctx context.Context) error {
	c, err := readConfig()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, c.address.network, c.address.at)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/health", http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("no agent answers on %s: %w", c.address, errors.Unwrap(err))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	switch {
	case err != nil:
		return err
	case response.Header.Get(Mark) == "":
		return fmt.Errorf("another program answers on %s", c.address)
	case response.StatusCode != http.StatusOK:
		var problem struct{ Detail string }
		_ = json.Unmarshal(body, &problem) // without a detail, the status is all there is
		return fmt.Errorf("the agent answers %d: %s", response.StatusCode, problem.Detail)
	}
	return nil
}
