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

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

// 200 checks share four connections, so many of them wait for longer than 3 s.
func TestABurstInTheAppIsNoOutage(t *testing.T) {
	for name, p := range map[string]*pool{
		"usual":                     {connections: 4, takes: 100 * time.Millisecond},
		"slow":                      {connections: 4, takes: 400 * time.Millisecond},
		"without a limit":           {takes: 400 * time.Millisecond},
		"the SDK's BuildableClient": {connections: 4, takes: 400 * time.Millisecond, buildable: true},
		"an attempt in fifty hangs": {connections: 4, takes: 100 * time.Millisecond, silent: func(n int) bool { return n%50 == 1 && n <= 200 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if b := checkAtOnce(t, p.open(t, client.Options{}), 200); b.allowed != 10 || b.outages != 0 {
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
		"the SDK's BuildableClient":   {&pool{connections: 10, silent: never, buildable: true}, 6 * time.Second},
		"no connection":               {&pool{unreachable: true}, 3 * time.Second},
		"no connection of ten":        {&pool{connections: 10, unreachable: true}, 6 * time.Second},
		"a dialer that tells nothing": {&pool{unreachable: true, quiet: true}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := tt.pool.open(t, client.Options{})
				if b := checkAtOnce(t, g, 50); b.outages != 50 || b.longest > tt.most {
					t.Errorf("%+v, want 50 outages within %v", b, tt.most)
				}
			})
		})
	}
}

// A call that waits for a connection ends with its caller's context. So does one that
// gets its connection less than 350 ms before the deadline.
func TestAConnectionShortlyBeforeTheCallersDeadline(t *testing.T) {
	for deadline, outage := range map[time.Duration]bool{999 * time.Millisecond: false, 1349 * time.Millisecond: false, 1350 * time.Millisecond: true} {
		synctest.Test(t, func(t *testing.T) {
			p := &pool{connections: 1, takes: time.Second, silent: func(n int) bool { return n == 2 }}
			g := p.open(t, client.Options{})
			go func() { _, _ = g.Check(t.Context(), "create_post", u1) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			began := time.Now()
			d, err := g.Check(ctx, "create_post", u1)
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
		g := p.open(t, client.Options{MaxTries: 1})
		check := func(want string, takes time.Duration) {
			t.Helper()
			began := time.Now()
			d, err := g.Check(t.Context(), "create_post", u1)
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

// A pool is a Lambda for an app that has only so many connections to it. Its
// guard lets ten requests through, and a repeat of one of them.
type pool struct {
	connections int // 0: as many as there are requests
	takes       time.Duration
	silent      func(request int) bool // whether it leaves a request without an answer; nil: none
	unreachable bool                   // whether no connection can be made
	quiet       bool                   // whether the app's own dialer does not tell when it begins
	buildable   bool                   // whether the app's HTTP client is the SDK's BuildableClient

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
	listener := testkit.NewPipes()
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
			<-listener.Closed
			return nil, net.ErrClosed
		}
		return listener.Dial(ctx)
	}
	var app lambda.HTTPClient = &http.Client{Transport: &p.transport}
	if p.buildable {
		app = awshttp.NewBuildableClient().WithTransportOptions(func(own *http.Transport) {
			own.Proxy, own.MaxConnsPerHost, own.DialContext = nil, p.connections, p.transport.DialContext
		})
	}
	o.Activities, o.Client = activities, sdk("http://lambda", app)
	return open(t, o)
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
			d, err := g.Check(t.Context(), "create_post", u1)
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
