package command

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

// A stream collects what a command writes.
type stream = testkit.Stream

// serving matches both lines that guards serve prints at its start. The second one
// is about the console.
var serving = regexp.MustCompile(`(?s)on (http://[^,]+),.*guards: the console `)

// serve runs guards serve on a free port and returns its URL and its log. The
// command is interrupted when the test ends, and its status must be 130.
func serve(t testing.TB, args ...string) (endpoint string, log *stream) {
	t.Helper()
	return serveGuards(t, app.All, atPinned, args...)
}

// serveGuards is like serve, for a project with these guards and with another clock.
func serveGuards(t testing.TB, page []guards.Guard, now func() time.Time, args ...string) (endpoint string, log *stream) {
	t.Helper()
	if !slices.Contains(args, "--addr") {
		args = append([]string{"--addr", "127.0.0.1:0"}, args...)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	log = new(stream)
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve"}, args...), session{page: page, out: io.Discard, err: log, now: now})
	}()
	t.Cleanup(func() {
		interrupt()
		if status := <-ended; status != interrupted {
			t.Errorf("guards serve ended with status %d:\n%s", status, log)
		}
	})
	return started(t, log, ended), log
}

// started waits until guards serve prints its URL, and returns it. Ended gets the
// status of the command.
func started(t testing.TB, log *stream, ended chan int) (endpoint string) {
	t.Helper()
	until(t, "guards serve has not started", func() bool {
		select {
		case status := <-ended:
			ended <- status
			t.Fatalf("guards serve ended with status %d:\n%s", status, log)
		default:
		}
		match := serving.FindStringSubmatch(log.String())
		if match != nil {
			endpoint = match[1]
		}
		return match != nil
	})
	return endpoint
}

// until waits until done returns true. After a minute, the test fails with the
// text of what.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// post sends body to an address. Headers alternate between names and values.
func post(t testing.TB, address, body string, headers ...string) testkit.Response {
	t.Helper()
	return testkit.Send(t, http.MethodPost, address, body, headers...)
}

// get reads an address.
func get(t testing.TB, address string) testkit.Response {
	t.Helper()
	return testkit.Send(t, http.MethodGet, address, "")
}

// invocations returns the Invoke API's address of a function.
func invocations(endpoint, name string) string {
	return endpoint + "/2015-03-31/functions/" + url.PathEscape(name) + "/invocations"
}

const like = `{"userId": "u1", "activity": "like"}`
