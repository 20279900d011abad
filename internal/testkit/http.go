package testkit

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// FreeAddress returns a HOST:PORT of this machine where nobody listens, and never the same one
// twice. The system gives such a port to nobody: its own begin at 32768.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(12_000))
		if _, given := addresses.LoadOrStore(address, true); given {
			continue
		}
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port was found")
	return ""
}

var addresses sync.Map // that FreeAddress has tried

// A Response is an HTTP response whose body was read.
type Response struct {
	*http.Response
	Text string // the body
}

// String returns all that a test shows of a response.
func (r Response) String() string { return fmt.Sprint(r.Status, " ", r.Header, " ", r.Text) }

// Wants reports a response with another status, and each of these texts that its body lacks.
func (r Response) Wants(t testing.TB, status int, texts ...string) {
	t.Helper()
	request := r.Request.Method + " " + r.Request.URL.Path
	if r.StatusCode != status {
		t.Errorf("%s: %v, want the status %d", request, r, status)
	}
	Contains(t, "the answer to "+request, r.Text, texts...)
}

// Send sends a request and reads the response. Headers alternate between names and
// values; the header Host is the host of the request.
func Send(t testing.TB, method, address, body string, headers ...string) Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Host = request.Header.Get("Host")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Response{response, string(text)}
}

// Pipes are a network within the process. A server that listens on it runs in the time
// of testing/synctest.
type Pipes struct {
	Closed   chan struct{} // closed by Close
	accepted chan net.Conn
	once     sync.Once
}

// NewPipes returns a network with one address.
func NewPipes() *Pipes { return &Pipes{Closed: make(chan struct{}), accepted: make(chan net.Conn)} }

// Dial returns a connection to the server.
func (p *Pipes) Dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accepted <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.Closed:
		return nil, net.ErrClosed
	}
}

// Accept implements [net.Listener].
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.Closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *Pipes) Close() error { p.once.Do(func() { close(p.Closed) }); return nil }

// Addr implements [net.Listener].
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{} }

// Serve starts a server, and stops it when the test ends.
func Serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}
