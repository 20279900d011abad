package lambdatest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	initLimit    = 30 * time.Second // time to ask for work or to exit; Lambda allows 10 s
	timeoutGrace = time.Second      // time after an invocation's deadline, for busy machines; Lambda allows none
	sigtermGrace = 5 * time.Second  // time between SIGTERM and SIGKILL, for busy machines; Lambda allows 500 ms
)

// Instance is one running copy of a function. Several goroutines may call its
// methods at the same time. As on Lambda, an instance handles one invocation at
// a time, and further invocations wait.
type Instance struct {
	*Process
	name    string
	api     *runtimeAPI
	server  *httptest.Server
	started time.Time
	stop    sync.Once
}

// Start runs binary as one instance and stops it when the test ends. Entries of
// env have the form NAME=value and override the defaults. The function also
// sees Lambda's own variables, made-up credentials and an empty HOME, but
// nothing of the test's environment. Start does not wait for the function. If
// the function exits at startup, Exit returns how, and Invoke and Ready fail.
func Start(t testing.TB, binary string, env ...string) *Instance {
	t.Helper()
	binary, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	name, dir := filepath.Base(binary), t.TempDir()
	i := &Instance{name: name, api: newRuntimeAPI("arn:aws:lambda:" + region + ":000000000000:function:" + name)}
	i.server = httptest.NewServer(i.api.handler())
	t.Cleanup(i.server.Close)
	i.started = time.Now()
	i.Process = StartProcess(t, binary, dir, append(environment(name, dir, i.server.Listener.Addr().String()), env...))
	t.Cleanup(i.Stop)
	return i
}

// Ready waits until the function asks for work the first time, and returns the
// time since its process started. That is the cold start without Lambda's own
// share.
func (i *Instance) Ready(t testing.TB) time.Duration {
	t.Helper()
	if err := i.waitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i.api.askedAt.Sub(i.started)
}

// waitReady waits for the first request for work, at most initLimit.
func (i *Instance) waitReady(ctx context.Context) error {
	select { // a function that was ready and has exited was ready
	case <-i.api.asked:
		return nil
	default:
	}
	select {
	case <-i.api.asked:
		return nil
	case <-i.exited:
		return i.errExited("before it asked for work")
	case <-time.After(initLimit):
		return fmt.Errorf("%s has not asked for work in %v; it wrote:\n%s", i.name, initLimit, i.Logs())
	case <-ctx.Done():
		return fmt.Errorf("wait for %s to ask for work: %w", i.name, ctx.Err())
	}
}

// Stop ends the instance as Lambda does: it kills the process. If the function
// asked for SIGTERM (lambda.WithEnableSIGTERM), it gets that signal first, and
// time to exit. A running invocation fails. Stop may be called more than once.
func (i *Instance) Stop() {
	i.stop.Do(func() {
		if i.api.sigterm.Load() && i.cmd.Process.Signal(syscall.SIGTERM) == nil {
			select {
			case <-i.exited:
			case <-time.After(sigtermGrace):
			}
		}
		i.kill()
		close(i.api.stopping)
		i.server.CloseClientConnections()
		i.server.Close()
	})
}

func (i *Instance) errExited(when string) error {
	return fmt.Errorf("%s ended %s (%v); it wrote:\n%s", i.name, when, i.cmd.ProcessState, i.Logs())
}
