package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// An agent is the program guards-agent at an address. No proxy and no redirect leads to it, so
// nothing else gets a request or the token.
type agent struct {
	address string // as it is configured
	base    string // before a path
	token   string // goes to this address and nowhere else
	client  *http.Client
	reached *atomic.Bool // whether it has ever answered this process
}

// reached holds an *atomic.Bool for each address of an agent.
var reached sync.Map

// withoutToken is what a client sends if no token is configured.
const withoutToken = "local"

// useAgent sets Agent and Token from the environment, unless another option names the way.
// It returns an error for options that contradict each other.
func (o *Options) useAgent() error {
	if o.Agent != "" && (o.Client != nil || len(o.URLs) > 0) {
		return wrongOption("Agent does not go with Client and URLs: these ask Lambda")
	}
	o.Agent = cmp.Or(o.Agent, os.Getenv("GUARDS_AGENT"))
	if o.Agent == "" {
		if o.Token != "" {
			return wrongOption("Token goes only with Agent or GUARDS_AGENT")
		}
		return nil
	}
	o.Token = cmp.Or(o.Token, os.Getenv("GUARDS_AGENT_TOKEN"))
	return nil
}

// newAgent returns the agent of the options. It sends nothing.
func newAgent(o *Options) (*agent, error) {
	const want = "want http://HOST:PORT, https://HOST or unix:/PATH"
	if strings.ContainsFunc(o.Token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, wrongOption("the token for the agent has a character that a header can't carry")
	}
	a := &agent{address: o.Agent, base: strings.TrimSuffix(o.Agent, "/"), token: cmp.Or(o.Token, withoutToken)}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second}
	path, isSocket := strings.CutPrefix(o.Agent, "unix:")
	u, err := url.Parse(o.Agent)
	switch {
	case isSocket && !strings.HasPrefix(path, "/"):
		return nil, wrongOption("Agent is %q, %s", o.Agent, want)
	case isSocket:
		a.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" || u.User != nil:
		return nil, wrongOption("the address of the agent has another form, %s", want) // it can have a password
	case o.Token != "" && u.Scheme == "http" && !loopback(u.Hostname()):
		o.Warn(wrongOption("the agent's token goes over the network without encryption, to %s: use https, or an agent on this machine", u.Host))
	}
	a.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answered, _ := reached.LoadOrStore(a.base+path, new(atomic.Bool))
	a.reached, _ = answered.(*atomic.Bool)
	return a, nil
}

// loopback reports whether a host is this machine only.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// askAgent asks the agent. It names the guard in the path if the client knows it.
func (g *Guards) askAgent(ctx context.Context, c *call) (Decision, error) {
	a := g.agent
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/"+c.guard, bytes.NewReader(c.payload))
	if err != nil {
		return Decision{}, c.notInvoked(err, err.Error())
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Guards-Token", a.token)
	request.GetBody = nil // no redirect gets it
	response, err := a.send(ctx, c, request)
	if err != nil {
		return Decision{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, maxBytes))
	if err != nil {
		return Decision{}, c.unreadable(ctx, err)
	}
	d, err := a.read(c, response, body)
	d.Date, _ = http.ParseTime(response.Header.Get("Date")) // the zero time if there is none
	return d, err
}

// read reads the agent's answer.
func (a *agent) read(c *call, response *http.Response, body []byte) (Decision, error) {
	var problem struct {
		Detail string `json:"detail"`
	}
	switch status := response.StatusCode; status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusInternalServerError:
		_ = json.Unmarshal(body, &problem) // without a detail, the status is all there is
		return Decision{}, c.configuration(nil, "The agent at %s can't decide: %s", a.address, c.foreign(cmp.Or(problem.Detail, statusCode(status))))
	case http.StatusRequestEntityTooLarge:
		return Decision{}, c.validation("the request has more than 64 KiB")
	}
	return c.readResponse(response, body)
}

// send sends a request. An answer that no agent gave is an error. It lets nobody through, even
// after an agent has answered: a program that took its port must not decide.
func (a *agent) send(ctx context.Context, c *call, request *http.Request) (*http.Response, error) {
	response, err := a.client.Do(request)
	if err != nil {
		return nil, a.silent(ctx, c, err)
	}
	if response.Header.Get("Guards-Agent") == "" {
		_ = response.Body.Close()
		return nil, c.configuration(nil, "Another program than guards-agent answers at %s. "+
			"Correct GUARDS_AGENT, or give the agent a port of its own.", a.address)
	}
	a.reached.Store(true)
	return response, nil
}

// silent returns what it means that no answer came. Before the agent has ever answered this
// process, it is missing, or the address is wrong. That lets no user through. After that, it is
// an outage.
func (a *agent) silent(ctx context.Context, c *call, err error) *Error {
	refused := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, syscall.Errno(10061)) // of Windows
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err // leaves out the address
	}
	why := err.Error()
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		why = "no answer in time"
	}
	why = c.foreign(why)
	if a.reached.Load() {
		return c.broken(why, err)
	}
	e := c.configuration(err, "No agent answers at %s: %s. Start guards-agent beside the app, or correct GUARDS_AGENT.", a.address, why)
	e.repeatable, e.missing, e.refused = true, true, refused
	return e
}

// isMissing reports whether an agent that has never answered did not answer.
func isMissing(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.missing
}

// ready asks the agent whether its settings and limits are right. It waits a while for an agent
// that starts after the app.
func (a *agent) ready(ctx context.Context, c *call) error {
	ctx, cancel := context.WithTimeout(ctx, c.left)
	defer cancel()
	for {
		err := a.health(ctx, c)
		if failed, ok := errors.AsType[*Error](err); !ok || !failed.refused || !sleep(ctx, network/3) {
			return err
		}
	}
}

func (a *agent) health(ctx context.Context, c *call) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/health", http.NoBody)
	if err != nil {
		return c.notInvoked(err, err.Error())
	}
	response, err := a.send(ctx, c, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	_ = json.NewDecoder(io.LimitReader(response.Body, maxBytes)).Decode(&problem) // without a detail, the status is all there is
	return c.configuration(nil, "The agent at %s can't decide: %s", a.address, cmp.Or(problem.Detail, statusCode(response.StatusCode)))
}
