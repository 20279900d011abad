package command

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
)

// A client can open a connection before it needs one. serve must not wait for
// it.
func TestServerClosesUnusedConnections(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.NotFoundHandler())
	server.ReadHeaderTimeout = 0 // it would also close the connection, but later
	go func() { _ = server.Serve(listener) }()
	unused, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unused.Close() }()
	post(t, "http://"+listener.Addr().String(), "") // the server accepts this connection after the unused one
	now, cancel := context.WithCancel(t.Context())
	cancel()
	_ = server.Shutdown(now)
	_ = unused.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := unused.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is still open: %v", err)
	}
}

// A guard answers POST /NAME as its Function URL would.
func TestServeAnswersHTTP(t *testing.T) {
	endpoint, _ := serve(t)
	ten := `{"userId": "u1", "activity": "create_post", "count": 10}`
	r := post(t, endpoint+"/posts-guard", ten)
	if r.StatusCode != 200 || r.Header.Get("RateLimit-Policy") != `"create_post";q=10;w=60` || !strings.Contains(r.body, `"granted":10`) {
		t.Errorf("%s %v %s", r.Status, r.Header, r.body)
	}
	r = post(t, endpoint+"/posts-guard", ten)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s %v %s", r.Status, r.Header, r.body)
	}
	r = post(t, endpoint+"/posts-guard", "{\"userId\": \"u\xff\", \"activity\": \"like\"}")
	if r.StatusCode != 400 || !strings.Contains(r.body, "userId is not UTF-8") {
		t.Errorf("%s %s", r.Status, r.body)
	}
	for _, name := range []string{"cleanup", "pots-guard"} {
		if r := post(t, endpoint+"/"+name, `{}`); r.StatusCode != 404 {
			t.Errorf("POST /%s: %s %s", name, r.Status, r.body)
		}
	}
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/posts-guard", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(get)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 405 {
		t.Errorf("GET: %s", answer.Status)
	}
}

// A page of another site can make a browser request any path. Its name must not
// control the terminal.
func TestServeLogsNoControlCharacters(t *testing.T) {
	endpoint, log := serve(t)
	for _, path := range []string{"/%1b%5d0%3bowned%07", "/%1b%5b2J%0aguards:%20all%20is%20well", "/a/%1b%5b2J", "/\u009b2J"} {
		if r := post(t, endpoint+path, "{}"); r.StatusCode != 404 {
			t.Errorf("%q: %s %s", path, r.Status, r.body)
		}
	}
	post(t, invocations(endpoint, "posts-guard"), "{\"userId\": \"u1\", \"activity\": \"\\u001b[2J\"}")
	for line := range strings.Lines(log.String()) {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) || strings.HasPrefix(line, "guards: all") {
			t.Errorf("the log has %q", line)
		}
	}
}
