package dynamotest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// A Plan holds the faults of the requests that one call sends, in order. Later
// requests pass. A request takes its plan from its context, so calls on one
// client can have different plans.
//
// A client that gives up too early could leave a request between itself and the
// proxy. So a request with a plan always reaches the proxy first. When the call
// returns, the table has performed the request or never will, unless the fault
// is [Late].
type Plan struct {
	Faults []Fault

	// Patience is how long a client without a deadline waits for the first byte
	// of an answer, like the timeouts of a transport. 0: forever.
	Patience time.Duration

	Attempts int // how many attempts a [Budget] makes

	mu   sync.Mutex
	sent []*Attempt
}

// An Attempt is one request of a call with a Plan.
type Attempt struct {
	Op    string
	Fault Fault

	body    atomic.Pointer[[]byte] // of the request, if it reached the proxy
	sealed  chan struct{}          // closed when the fate of the request is certain
	once    sync.Once
	deliver func() error // Late: performs the request
}

type planKey struct{}

// In returns a context that makes requests follow the plan.
func (p *Plan) In(ctx context.Context) context.Context { return context.WithValue(ctx, planKey{}, p) }

// Sent returns the requests that were sent so far.
func (p *Plan) Sent() []*Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// A Budget makes as many attempts as the plan of the call says. It implements
// ratelimit.Budget.
type Budget struct{ failed int }

// Next reports whether the plan has one more attempt.
func (b *Budget) Next(ctx context.Context, failed bool) bool {
	if failed {
		b.failed++
	}
	return b.failed < ctx.Value(planKey{}).(*Plan).Attempts
}

// send begins the next attempt.
func (p *Plan) send(op string) *Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &Attempt{Op: op, sealed: make(chan struct{})}
	if len(p.sent) < len(p.Faults) {
		a.Fault = p.Faults[len(p.sent)]
	}
	p.sent = append(p.sent, a)
	return a
}

// Probes reports whether the request only asks if the table answers. A call may send one
// before its own, and it counts nothing.
func (a *Attempt) Probes() bool {
	body := a.body.Load()
	return body != nil && bytes.Contains(*body, []byte("probe"))
}

// Deliver performs a request that is [Late]. It may be called once, after the
// call has returned.
func (a *Attempt) Deliver() error {
	<-a.sealed
	if a.deliver == nil {
		return fmt.Errorf("the request with the fault %q never reached the proxy", a.Fault)
	}
	return a.deliver()
}

// seal notes that the fate of the request is certain. A nil Attempt has no
// plan.
func (a *Attempt) seal() {
	if a != nil {
		a.once.Do(func() { close(a.sealed) })
	}
}

// attemptHeader carries the number of an attempt from the client to the proxy.
const attemptHeader = "X-Dynamotest-Attempt"

// faultOf returns the fault of a request, and its attempt if it has a plan.
func (p *Proxy) faultOf(r *http.Request, op string) (Fault, *Attempt) {
	if found, ok := p.attempts.Load(r.Header.Get(attemptHeader)); ok {
		a := found.(*Attempt)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.counts[op]++
		return a.Fault, a
	}
	return p.admit(op), nil
}

// Config returns an SDK configuration as the Lambda functions use it. Its
// requests go through the proxy and follow the plans of their contexts.
func (p *Proxy) Config(ctx context.Context) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = time.Minute // a busy machine can stand still for 10 s
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client), config.WithBaseEndpoint(p.URL()),
		config.WithRegion("us-east-1"), config.WithCredentialsProvider(madeUp), config.WithLogger(logging.Nop{}))
	if err == nil {
		cfg.HTTPClient = planned{p, cfg.HTTPClient}
	}
	return cfg, err
}

// planned is an HTTP client whose requests follow the plans of their contexts.
type planned struct {
	proxy  *Proxy
	client aws.HTTPClient
}

// Do implements [aws.HTTPClient].
func (c planned) Do(r *http.Request) (*http.Response, error) {
	plan, ok := r.Context().Value(planKey{}).(*Plan)
	if !ok {
		return c.client.Do(r)
	}
	a := plan.send(operation(r))
	number := strconv.FormatInt(c.proxy.numbers.Add(1), 10)
	c.proxy.attempts.Store(number, a)
	defer c.proxy.attempts.Delete(number)
	defer a.seal() // without a connection, nothing else does

	caller := r.Context()
	ctx, giveUp := context.WithCancel(context.WithoutCancel(caller))
	context.AfterFunc(caller, func() { <-a.sealed; giveUp() })
	if plan.Patience > 0 && a.Fault.Hangs() {
		time.AfterFunc(plan.Patience, func() { <-a.sealed; giveUp() })
	}
	r = r.WithContext(ctx)
	r.Header.Set(attemptHeader, number)
	resp, err := c.client.Do(r)
	switch {
	case err != nil && caller.Err() != nil:
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL, caller.Err())
	case err != nil && ctx.Err() != nil: // the patience is at its end
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	return resp, err
}
