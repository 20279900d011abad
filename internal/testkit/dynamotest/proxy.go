package dynamotest

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy forwards requests from a client to DynamoDB. It counts requests and the
// capacity they use, and makes requests fail on demand. Several goroutines may
// call its methods at any time.
//
// It adds ReturnConsumedCapacity to each request, which invalidates the
// request's signature. DynamoDB Local doesn't check signatures.
type Proxy struct {
	server    *httptest.Server
	backend   string
	transport *http.Transport
	ctx       context.Context // done when the test ends; a client that gives up doesn't cancel a forwarded request

	mu     sync.Mutex
	counts map[string]int
	units  units
	fails  []*fail
	do     func(op string) Fault
	before map[string][]func()

	attempts sync.Map // *Attempt by the value of attemptHeader
	numbers  atomic.Int64
}

// fail is one call of Fail.
type fail struct {
	left  int
	fault Fault
	ops   []string // empty: all operations
}

// NewProxy starts a proxy in front of Endpoint and stops it when the test ends.
// Then it closes the connections of requests that still hang.
func NewProxy(t testing.TB) *Proxy {
	t.Helper()
	return NewProxyTo(t, Endpoint(t))
}

// NewProxyTo is like NewProxy, for any service with the same protocol, such as
// SQS. It counts capacity only for DynamoDB.
func NewProxyTo(t testing.TB, backend string) *Proxy {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		backend:   backend,
		transport: newTransport(),
		ctx:       ctx,
		counts:    map[string]int{},
		before:    map[string][]func(){},
	}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		cancel()
		p.server.CloseClientConnections()
		p.server.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// URL returns the endpoint for clients.
func (p *Proxy) URL() string { return p.server.URL }

// Counts returns the number of requests by operation, such as {"UpdateItem":
// 2}. It includes requests that were made to fail.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// WriteUnits returns the write capacity used, as the table reports it. DynamoDB
// doesn't report the capacity of a failed condition. The proxy counts one unit
// for it, which is right for items of up to 1,024 bytes. DynamoDB Local reports
// no capacity for PartiQL, so there these requests count 0.
func (p *Proxy) WriteUnits() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.units.write
}

// ReadUnits returns the read capacity used, as the table reports it.
func (p *Proxy) ReadUnits() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.units.read
}

// ResetCounts sets Counts, WriteUnits and ReadUnits to zero.
func (p *Proxy) ResetCounts() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.counts)
	p.units = units{}
}

// Fail gives the next n requests the fault f. If ops are given, it affects only
// these operations. Several calls take effect one after the other. math.MaxInt
// means an outage that lasts until Heal.
func (p *Proxy) Fail(n int, f Fault, ops ...string) {
	if f == UnprocessedStatements && len(ops) == 0 {
		ops = []string{"BatchExecuteStatement"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = append(p.fails, &fail{n, f, ops})
}

// Do calls decide for each request that Fail doesn't affect, and gives the
// request the fault that decide returns. A nil decide ends that. Several
// goroutines call decide at the same time. It may sleep and return Pass, to act
// like a slow network.
func (p *Proxy) Do(decide func(op string) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do = decide
}

// Heal ends the effect of all calls of Fail and Do. A request that already
// hangs keeps hanging.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails, p.do = nil, nil
}

// Before runs hook once, before the next request of the operation op goes to
// the table. Other requests of op wait for the hook. A hook must call the table
// directly and not through this proxy. It may call t.Error, but not t.Fatal,
// because it doesn't run on the test's goroutine.
func (p *Proxy) Before(op string, hook func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before[op] = append(p.before[op], sync.OnceFunc(hook))
}

// admit counts a request and returns its fault.
func (p *Proxy) admit(op string) Fault {
	p.mu.Lock()
	p.counts[op]++
	for i, f := range p.fails {
		if len(f.ops) > 0 && !slices.Contains(f.ops, op) {
			continue
		}
		if f.left--; f.left <= 0 {
			p.fails = slices.Delete(p.fails, i, i+1)
		}
		p.mu.Unlock()
		return f.fault
	}
	decide := p.do
	p.mu.Unlock()
	if decide == nil {
		return Pass
	}
	return decide(op)
}

// runHooks runs the hooks for op.
func (p *Proxy) runHooks(op string) {
	p.mu.Lock()
	due := slices.Clone(p.before[op])
	p.mu.Unlock()
	for _, hook := range due {
		hook()
	}
}
