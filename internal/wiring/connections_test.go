package wiring_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/wiring"
)

// A server accepts connections and says nothing. A request ends with its context. The
// connection goes on, because another request could use it, but not forever.
func TestAHandshakeThatHangsEnds(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	closed := make(chan error, 1)
	go func() {
		c, err := silent.Accept()
		if err == nil {
			defer func() { _ = c.Close() }()
			_, err = io.Copy(io.Discard, c) // until the guard closes it
		}
		closed <- err
	}()
	client := ThroughFreezes(awshttp.NewBuildableClient())
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+silent.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request: %v, want the end of its context", err)
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the connection is still open after two minutes, want 10 s")
	}
}

// A guard's store can open a connection of its own beside one that is perhaps dead.
func TestAGuardCanRedial(t *testing.T) {
	store := dynamostore.New(aws.Config{Region: "eu-west-1", HTTPClient: ThroughFreezes(awshttp.NewBuildableClient())}, "rateLimit")
	if store.Redial() == ratelimit.Store(store) {
		t.Error("the store has no connections of its own")
	}
}

// Many decisions at once keep their connections for the next ones.
func TestManyConnectionsAreKept(t *testing.T) {
	const callers = 50
	var opened atomic.Int64
	var all sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		all.Done()
		all.Wait() // until each caller has a connection
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := ThroughFreezes(awshttp.NewBuildableClient())
	for range 3 {
		all.Add(callers)
		var ended sync.WaitGroup
		for range callers {
			ended.Go(func() {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
				answer, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			})
		}
		ended.Wait()
	}
	if n := opened.Load(); n != callers {
		t.Errorf("three times %d requests opened %d connections, want %d", callers, n, callers)
	}
}
