package client_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

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
	o.Activities = activities
	o.Client = lambda.New(lambda.Options{Region: urlRegion, Credentials: anyKeys, BaseEndpoint: aws.String("http://lambda"), HTTPClient: app})
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
