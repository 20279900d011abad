package lambdatest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// An Extension is one process beside an app's function, with an Extensions API of its own.
// There is no function: the test is the app.
type Extension struct {
	*Process
	over chan struct{} // closed at SHUTDOWN

	mu         sync.Mutex
	name       string   // as it registered
	events     []string // as it registered
	registered chan struct{}
	waiting    chan struct{} // closed when it first asks for an event
	meanwhile  func()        // called while it registers; may be nil
}

// notForExtensions are the variables that Lambda gives to a function and to no extension.
var notForExtensions = []string{
	"AWS_EXECUTION_ENV", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME", "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR", "_HANDLER",
}

// StartExtension runs binary as an extension and kills it when the test ends. Entries of env
// are as for [Start]. Meanwhile is called while the extension registers; it may be nil.
func StartExtension(t testing.TB, binary string, meanwhile func(), env ...string) *Extension {
	t.Helper()
	e := &Extension{over: make(chan struct{}), registered: make(chan struct{}), waiting: make(chan struct{}), meanwhile: meanwhile}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2020-01-01/extension/register", e.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", e.next)
	server, dir := httptest.NewServer(mux), t.TempDir()
	t.Cleanup(server.Close) // after the end of the process
	own := slices.DeleteFunc(environment("app", dir, server.Listener.Addr().String()), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(notForExtensions, name)
	})
	e.Process = StartProcess(t, binary, dir, append(own, env...))
	return e
}

func (e *Extension) register(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Events []string `json:"events"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if e.meanwhile != nil {
		e.meanwhile()
	}
	e.mu.Lock()
	e.name, e.events = r.Header.Get("Lambda-Extension-Name"), body.Events
	e.mu.Unlock()
	close(e.registered) // a second time is a mistake of the extension, and panics
	w.Header().Set("Lambda-Extension-Identifier", "extension-1")
	_, _ = io.WriteString(w, `{"functionName":"app","functionVersion":"$LATEST","handler":"index.handler"}`)
}

func (e *Extension) next(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Lambda-Extension-Identifier") != "extension-1" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	close(e.waiting)
	select {
	case <-e.over:
		_, _ = fmt.Fprintf(w, `{"eventType":"SHUTDOWN","shutdownReason":"spindown","deadlineMs":%d}`, time.Now().Add(2*time.Second).UnixMilli())
	case <-r.Context().Done():
	}
}

// Wait waits until the extension has registered and waits for an event. It returns the name and
// the events that it gave.
func (e *Extension) Wait(t testing.TB) (name string, events []string) {
	t.Helper()
	for _, step := range []chan struct{}{e.registered, e.waiting} {
		select {
		case <-step:
		case <-e.exited:
			t.Fatalf("the extension ended (%v); it wrote:\n%s", e.cmd.ProcessState, e.Logs())
		case <-time.After(initLimit):
			t.Fatalf("the extension does not register; it wrote:\n%s", e.Logs())
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.name, e.events
}

// Shutdown sends the event SHUTDOWN and returns how the extension ended.
func (e *Extension) Shutdown(t testing.TB) Exit {
	t.Helper()
	close(e.over)
	select {
	case <-e.exited:
	case <-time.After(sigtermGrace):
		t.Fatalf("the extension still runs %v after SHUTDOWN; it wrote:\n%s", sigtermGrace, e.Logs())
	}
	return Exit{Code: e.cmd.ProcessState.ExitCode(), Logs: e.Logs()}
}
