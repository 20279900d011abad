package lambdatest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	initLimit    = 30 * time.Second       // for a function to ask for work, or to exit; Lambda gives 10 s
	timeoutGrace = time.Second            // past an invocation's deadline, for a busy machine; Lambda gives none
	sigtermGrace = 500 * time.Millisecond // between SIGTERM and SIGKILL, as on Lambda
)

// Instance is one running copy of a function. Its methods may be called by
// several goroutines at once; like any instance on Lambda it works on one
// invocation at a time, and further ones wait.
type Instance struct {
	name    string
	api     *runtimeAPI
	server  *httptest.Server
	cmd     *exec.Cmd
	started time.Time
	log     string        // path of the file that stdout and stderr go to
	exited  chan struct{} // closed when the process has ended
	stop    func()
}

// Start runs binary as one instance and stops it when the test ends. env holds
// NAME=value entries, each in place of the default of that name. Beside them
// the function sees Lambda's own variables, made-up credentials, an empty HOME
// and nothing of the test's environment. Start does not wait: a function that
// refuses to start is seen by Exit, and by Invoke and Ready as a failure.
func Start(t testing.TB, binary string, env ...string) *Instance {
	t.Helper()
	binary, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	// A file and not a pipe: all that was written before an answer is in it
	// when the answer arrives.
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the process has a descriptor of its own

	name, dir := filepath.Base(binary), t.TempDir()
	i := &Instance{name: name, log: log.Name(), exited: make(chan struct{})}
	i.api = newRuntimeAPI("arn:aws:lambda:" + region + ":000000000000:function:" + name)
	i.server = httptest.NewServer(i.api.handler())
	i.stop = sync.OnceFunc(i.shutDown)

	i.cmd = exec.Command(binary)
	i.cmd.Dir, i.cmd.Stdout, i.cmd.Stderr = dir, log, log
	i.cmd.Env = append(environment(name, dir, i.server.Listener.Addr().String()), env...)
	i.started = time.Now()
	if err := i.cmd.Start(); err != nil {
		i.server.Close()
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(i.exited)
		_ = i.cmd.Wait() // how it ended is in its ProcessState
	}()
	t.Cleanup(func() {
		i.Stop()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, i.Logs())
		}
	})
	return i
}

// Ready is how long the function took from the start of its process to its
// first request for work: its cold start, without Lambda's own part of it.
// Ready waits for that request.
func (i *Instance) Ready(t testing.TB) time.Duration {
	t.Helper()
	if err := i.waitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i.api.askedAt.Sub(i.started)
}

func (i *Instance) waitReady(ctx context.Context) error {
	select { // no timer once it is ready
	case <-i.api.asked:
		return nil
	default:
	}
	limit := time.NewTimer(initLimit)
	defer limit.Stop()
	select {
	case <-i.api.asked:
		return nil
	case <-i.exited:
		return i.errExited("before it asked for work")
	case <-limit.C:
		return fmt.Errorf("%s has not asked for work in %v; it wrote:\n%s", i.name, initLimit, i.Logs())
	case <-ctx.Done():
		return fmt.Errorf("wait for %s to ask for work: %w", i.name, ctx.Err())
	}
}

// Exit is how a process ended.
type Exit struct {
	Code      int    // -1: by a signal
	InitError string // what it posted to /runtime/init/error, where it did
	Logs      string
}

// Exit waits for a function that stops by itself, such as one whose
// environment can't be read.
func (i *Instance) Exit(t testing.TB) Exit {
	t.Helper()
	select {
	case <-i.exited:
	case <-time.After(initLimit):
		t.Fatalf("%s is still running after %v; it wrote:\n%s", i.name, initLimit, i.Logs())
	}
	i.api.mu.Lock()
	defer i.api.mu.Unlock()
	return Exit{Code: i.cmd.ProcessState.ExitCode(), InitError: string(i.api.initError), Logs: i.Logs()}
}

// Logs is what the function has written so far to stdout and stderr. All that
// it wrote in an invocation is there when Invoke returns.
func (i *Instance) Logs() string {
	b, err := os.ReadFile(i.log)
	if err != nil {
		return fmt.Sprintf("lambdatest: %v", err)
	}
	return string(b)
}

// Stop ends the instance as Lambda does: it is killed, or, where it asked for
// SIGTERM (lambda.WithEnableSIGTERM), given half a second's notice. An
// invocation at work fails. Stop may be called more than once.
func (i *Instance) Stop() { i.stop() }

func (i *Instance) shutDown() {
	i.api.mu.Lock()
	sigterm := i.api.sigterm
	i.api.mu.Unlock()
	if sigterm && i.cmd.Process.Signal(syscall.SIGTERM) == nil {
		select {
		case <-i.exited:
		case <-time.After(sigtermGrace):
		}
	}
	_ = i.cmd.Process.Kill() // it may have ended already
	<-i.exited
	close(i.api.stopping)
	i.server.CloseClientConnections()
	i.server.Close()
}

func (i *Instance) errExited(when string) error {
	return fmt.Errorf("%s ended %s (%v); it wrote:\n%s", i.name, when, i.cmd.ProcessState, i.Logs())
}
