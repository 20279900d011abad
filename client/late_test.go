package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

// lateAt is a variable with the URL of the Lambda that the app below asks.
const lateAt = "GUARDS_TEST_LATE"

// An app sends its request, and then computes so much for a second that no
// goroutine gets a turn. That is longer than the call's timeout of half a second. The
// answer comes soon afterwards. (The scenarios have an answer that lies in the socket
// meanwhile.)
func TestAProcessThatWasLateReadsItsAnswer(t *testing.T) {
	if url := os.Getenv(lateAt); url != "" {
		busyApp(t, url)
		return
	}
	testkit.Retry(t, func(t testing.TB) { // the app and its server share a machine that can be busy
		later := make(chan bool)
		server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method == http.MethodGet { // the app computes no more
				close(later)
			}
			select {
			case <-later:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, okBody)
		})
		app := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAProcessThatWasLateReadsItsAnswer$", "-test.v")
		app.Env = append(os.Environ(), lateAt+"="+server.URL)
		if out, err := app.Output(); err != nil || !strings.Contains(string(out), "the decision: true <nil> <nil>\n") {
			t.Errorf("%v, %s", err, out)
		}
	})
}

func busyApp(t *testing.T, url string) {
	t.Helper()
	g := open(t, client.Options{
		Activities: activities, Client: sdk(url, nil),
		MaxTries: 1, DecisionTimeout: 200 * time.Millisecond, Timeout: 500 * time.Millisecond,
	})
	runtime.GOMAXPROCS(1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		until := time.Now().Add(time.Second)
		for range 100 { // each has a turn of 10 ms
			go func() {
				for time.Now().Before(until) {
				}
			}()
		}
		time.AfterFunc(1100*time.Millisecond, func() {
			if response, err := http.Get(url); err == nil {
				_ = response.Body.Close()
			}
		})
	}})
	d, err := g.Check(ctx, "create_post", u1)
	fmt.Println("the decision:", d.Allowed, d.Outage, err)
}
