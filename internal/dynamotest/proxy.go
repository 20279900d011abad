package dynamotest

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Proxy stands between a client and the DynamoDB at Endpoint. It counts
// requests and what they cost, and makes them fail on demand. All its methods
// may be called at any time, by several goroutines.
//
// It asks for ReturnConsumedCapacity on each request it passes on, so a
// request no longer fits its signature: for engines that check none.
type Proxy struct {
	server    *httptest.Server
	backend   string
	transport *http.Transport
	ctx       context.Context // ends with the test; what was passed on is not cancelled by its client

	mu     sync.Mutex
	counts map[string]int
	units  units
	fails  []*fail
	do     func(op string) Fault
	before map[string][]func()
	after  map[string][]func()
}

// fail is one call of Fail.
type fail struct {
	left  int
	fault Fault
	ops   []string // none: any
}

// NewProxy starts a proxy in front of Endpoint and stops it when the test
// ends. Requests that hang then are dropped.
func NewProxy(t testing.TB) *Proxy {
	t.Helper()
	return NewProxyTo(t, Endpoint(t))
}

// NewProxyTo is NewProxy in front of another service of the same protocol, such
// as SQS. There nothing is known of what a request costs.
func NewProxyTo(t testing.TB, backend string) *Proxy {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		backend:   backend,
		transport: newTransport(),
		ctx:       ctx,
		counts:    map[string]int{},
		before:    map[string][]func(){},
		after:     map[string][]func(){},
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

// URL is the endpoint to give a client.
func (p *Proxy) URL() string { return p.server.URL }

// Counts is how many requests of each operation came in, such as
// {"UpdateItem": 2}: those that were made to fail, too.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// WriteUnits is the write capacity used, as the table reports it. Of a failed
// condition it reports nothing, which is counted as the one unit that it costs
// on an item of up to 1,024 bytes. DynamoDB Local reports nothing of PartiQL
// either: there such requests count 0.
func (p *Proxy) WriteUnits() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.units.write
}

// ReadUnits is the read capacity used, as the table reports it.
func (p *Proxy) ReadUnits() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.units.read
}

// ResetCounts begins Counts, WriteUnits and ReadUnits anew.
func (p *Proxy) ResetCounts() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.counts)
	p.units = units{}
}

// Fail gives the next n requests the fault f; only those of ops, if any are
// named. Several calls queue up. With math.MaxInt it is an outage until Heal.
func (p *Proxy) Fail(n int, f Fault, ops ...string) {
	if f == UnprocessedStatements && len(ops) == 0 {
		ops = []string{"BatchExecuteStatement"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = append(p.fails, &fail{n, f, ops})
}

// Do has decide give each request its fault that Fail leaves alone; nil ends
// that. It runs on the request's own goroutine, several at once, and may take
// its time: one that sleeps and returns Pass is a slow network.
func (p *Proxy) Do(decide func(op string) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do = decide
}

// Heal ends all that Fail and Do ordered. A request that hangs stays so.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails, p.do = nil, nil
}

// Before runs hook once, before the next request of op is passed on to the
// table; others of op wait until it is done. A hook asks the table past this
// proxy, and reports by t.Error: t.Fatal is for a test's own goroutine.
func (p *Proxy) Before(op string, hook func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before[op] = append(p.before[op], sync.OnceFunc(hook))
}

// After runs hook once, when the table has carried out the next request of op
// and before its client gets the answer, if it does. Otherwise it is as Before.
func (p *Proxy) After(op string, hook func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after[op] = append(p.after[op], sync.OnceFunc(hook))
}

// admit counts a request and decides on its fault.
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

// runHooks takes those of op from hooks, which is p.before or p.after.
func (p *Proxy) runHooks(hooks map[string][]func(), op string) {
	p.mu.Lock()
	due := slices.Clone(hooks[op])
	p.mu.Unlock()
	for _, hook := range due {
		hook()
	}
}
