package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// begin sends a text to the server, and returns the server's answer to it.
func begin(t *testing.T, conn net.Conn, text string) func() string {
	t.Helper()
	answered := make(chan string, 1)
	go func() {
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			answered <- err.Error()
			return
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		answered <- response.Status + " " + string(body)
	}()
	testkit.Must(io.WriteString(conn, text))(t)
	return func() string { return <-answered }
}

// A client that does not send its whole body must not keep a connection, nor
// delay Ctrl-C.
func TestServeEndsABodyThatDoesNotArrive(t *testing.T) {
	const head = " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
	for _, path := range []string{"/posts-guard", "/2015-03-31/functions/posts-guard/invocations", "/2015-03-31/functions/no-guard/invocations", "/nothing"} {
		for _, interrupt := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				server, conn := connect(&invokeapi.Server{Functions: map[string]invokeapi.Function{"posts-guard": {Timeout: guardTimeout, URL: true}}})
				server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
				began := time.Now()
				answer := begin(t, conn, "POST "+path+head)
				want := arrival
				if interrupt {
					time.Sleep(time.Second)
					want = 0
					began = time.Now()
					_ = server.Shutdown(t.Context())
				}
				got := answer()
				rest, err := io.ReadAll(conn)
				if took := time.Since(began); took < want || took >= want+time.Second || len(rest) > 0 {
					t.Errorf("POST %s, interrupted: %v: the connection is closed after %v with %q (%v), want %v", path, interrupt, took, rest, err, want)
				}
				if strings.Contains(path, "posts-guard") && !strings.HasPrefix(got, "408 Request Timeout ") {
					t.Errorf("POST %s is answered with %s", path, got)
				}
				_ = conn.Close()
				if !interrupt {
					_ = server.Close()
				}
			})
		}
	}
}

// connect starts a server, and returns a connection to it.
func connect(h http.Handler) (*http.Server, net.Conn) {
	server := newServer(h)
	return server, dial(server)
}

func dial(server *http.Server) net.Conn {
	listener := testkit.NewPipes()
	go func() { _ = server.Serve(listener) }()
	conn, _ := listener.Dial(context.Background()) // it fails only after Close
	return conn
}

// working handles requests that take some time.
func working(takes time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		time.Sleep(takes)
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "done")
	}
}

const whole = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"

// The time of the body is not the function's time, and the connection stays
// open for the next request.
func TestServeKeepsAConnectionWhileAFunctionRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, conn := connect(working(2 * arrival))
		for range 2 {
			if got := begin(t, conn, whole)(); got != "200 OK done" {
				t.Error(got)
			}
		}
		_ = conn.Close()
		_ = server.Close()
	})
}

// Ctrl-C lets a request end that has arrived.
func TestServeFinishesWhatHasArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, conn := connect(working(arrival / 2))
		answer := begin(t, conn, whole)
		synctest.Wait()
		err := server.Shutdown(t.Context())
		if got := answer(); err != nil || got != "200 OK done" {
			t.Errorf("%s, %v", got, err)
		}
		_ = conn.Close()
	})
}

// A client can open a connection before it needs one. serve must not wait for it.
func TestServeClosesUnusedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(working(0))
		server.ReadHeaderTimeout = 0 // it would also close the connection, but later
		unused := dial(server)
		synctest.Wait()
		began := time.Now()
		go func() { _ = server.Shutdown(t.Context()) }()
		_, err := unused.Read(make([]byte, 1))
		if took := time.Since(began); !errors.Is(err, io.EOF) || took > 0 {
			t.Errorf("after %v: %v, want the end at once", took, err)
		}
	})
}
