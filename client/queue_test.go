package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
)

// A pool is a Lambda to which an app has only so many connections. Its guard lets
// ten requests through, and a repeat of one of them.
type pool struct {
	connections int // 0: as many as there are requests
	takes       time.Duration
	silent      func(request int) bool // whether it leaves a request without an answer; nil: none
	unreachable bool                   // whether no connection can be made
	quiet       bool                   // whether the app's own dialer does not tell when it begins

	transport http.Transport
	mu        sync.Mutex
	requests  int
	granted   map[string]bool // by request id
}

// open returns a client that asks the pool's guard. Its network is in this
// process, so that its time is the test's.
func (p *pool) open(t *testing.T, o client.Options) *client.Guards {
	t.Helper()
	p.granted = map[string]bool{}
	listener := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Hour}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		p.transport.CloseIdleConnections()
	})
	p.transport.MaxConnsPerHost = p.connections
	p.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.ConnectStart != nil && !p.quiet {
			trace.ConnectStart(network, address) // as a net.Dialer does
		}
		if p.unreachable {
			<-listener.closed
			return nil, net.ErrClosed
		}
		return listener.dial(ctx)
	}
	o.Client = lambda.New(lambda.Options{
		Region: urlRegion, Credentials: anyKeys, BaseEndpoint: aws.String("http://lambda"), HTTPClient: &http.Client{Transport: &p.transport},
	})
	o.Warn = func(error) {}
	g, err := client.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (p *pool) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e event
	if json.NewDecoder(r.Body).Decode(&e) != nil {
		return
	}
	p.mu.Lock()
	p.requests++
	hangs := p.silent != nil && p.silent(p.requests)
	allowed := !hangs && (p.granted[e.RequestID] || len(p.granted) < 10)
	if allowed {
		p.granted[e.RequestID] = true
	}
	p.mu.Unlock()
	if hangs {
		<-r.Context().Done()
		return
	}
	select {
	case <-time.After(p.takes):
	case <-r.Context().Done():
		return
	}
	answer := limitedBody
	if allowed {
		answer = okBody
	}
	_, _ = w.Write([]byte(answer))
}

// pipes is a network within the process.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accepted <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// A burst is what many checks at once come to.
type burst struct {
	allowed int           // by the guard
	outages int           // decided by OnOutage
	longest time.Duration // how long the slowest check took
}

func checkAtOnce(t *testing.T, g *client.Guards, n int) (b burst) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
			mu.Lock()
			defer mu.Unlock()
			b.longest = max(b.longest, time.Since(began))
			switch {
			case err != nil:
				t.Error(err)
			case d.Outage != nil:
				b.outages++
			case d.Allowed:
				b.allowed++
			}
		})
	}
	wg.Wait()
	return b
}

// 500 checks share ten connections, so most of them wait for longer than 3 s.
func TestABurstInTheAppIsNoOutage(t *testing.T) {
	for name, p := range map[string]*pool{
		"usual":                         {connections: 10, takes: 100 * time.Millisecond},
		"slow":                          {connections: 10, takes: 400 * time.Millisecond},
		"without a limit":               {takes: 400 * time.Millisecond},
		"an attempt in a hundred hangs": {connections: 10, takes: 100 * time.Millisecond, silent: func(n int) bool { return n%100 == 1 && n <= 500 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if b := checkAtOnce(t, p.open(t, client.Options{}), 500); b.allowed != 10 || b.outages != 0 {
					t.Errorf("%+v, want 10 allowed and no outage", b)
				}
			})
		})
	}
}

// A guard that is gone costs each caller at most 3 s from when its request has a
// connection. The calls that wait are decided with the first one that is lost.
func TestAGuardThatIsGoneDoesNotKeepTheQueueWaiting(t *testing.T) {
	never := func(int) bool { return true }
	for name, tt := range map[string]struct {
		pool *pool
		most time.Duration
	}{
		"no limit":                    {&pool{silent: never}, 3 * time.Second},
		"ten connections":             {&pool{connections: 10, silent: never}, 6 * time.Second},
		"no connection":               {&pool{unreachable: true}, 3 * time.Second},
		"no connection of ten":        {&pool{connections: 10, unreachable: true}, 6 * time.Second},
		"a dialer that tells nothing": {&pool{unreachable: true, quiet: true}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := tt.pool.open(t, client.Options{})
				if b := checkAtOnce(t, g, 200); b.outages != 200 || b.longest > tt.most {
					t.Errorf("%+v, want 200 outages within %v", b, tt.most)
				}
			})
		})
	}
}

func TestOnlyTheCallerEndsAWaitForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{connections: 1, takes: time.Second}
		g := p.open(t, client.Options{})
		var wg sync.WaitGroup
		for range 5 { // the last one is answered after 5 s
			wg.Go(func() {
				if d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"}); err != nil || d.Outage != nil {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		d, err := g.Check(ctx, "create_post", client.Request{UserID: "u1"})
		if !errors.Is(err, context.DeadlineExceeded) || kindOf(err) != nil || d.Allowed {
			t.Errorf("%+v, %v, want the context's error", d, err)
		}
		wg.Wait()
		if p.requests != 5 {
			t.Errorf("%d requests, want 5", p.requests)
		}
	})
}

// Less than 350 ms are left when the request gets its connection.
func TestAConnectionShortlyBeforeTheCallersDeadline(t *testing.T) {
	for deadline, outage := range map[time.Duration]bool{1349 * time.Millisecond: false, 1350 * time.Millisecond: true} {
		synctest.Test(t, func(t *testing.T) {
			p := &pool{connections: 1, takes: time.Second, silent: func(n int) bool { return n == 2 }}
			g := p.open(t, client.Options{})
			go func() { _, _ = g.Check(t.Context(), "create_post", client.Request{UserID: "u1"}) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			began := time.Now()
			d, err := g.Check(ctx, "create_post", client.Request{UserID: "u1"})
			want := deadline
			if outage {
				want -= 50 * time.Millisecond
			}
			if took := time.Since(began); took != want || outage != (err == nil && d.Outage != nil) || outage == errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %+v, %v after %v", deadline, d, err, took)
			}
		})
	}
}

// A probe must not wait forever for a connection of a guard that may be gone.
func TestAProbeDoesNotWaitForAConnectionForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{connections: 1, silent: func(int) bool { return true }}
		g := p.open(t, client.Options{Attempts: 1})
		check := func(want string, takes time.Duration) {
			t.Helper()
			began := time.Now()
			d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
			if err != nil || d.Outage == nil || !strings.HasSuffix(d.Outage.Error(), want) || time.Since(began) != takes {
				t.Errorf("%+v, %v after %v, want %s after %v", d.Outage, err, time.Since(began), want, takes)
			}
		}
		check("no answer in time", 3*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { // another part of the app takes the connection
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lambda/", strings.NewReader("{}"))
			if err != nil {
				panic(err)
			}
			if response, err := p.transport.RoundTrip(r); err == nil {
				_ = response.Body.Close()
			}
		}()
		time.Sleep(time.Second)
		check("no answer in time", 3*time.Second)
		check("did not answer a moment ago", 0)
	})
}
