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
	initLimit    = 30 * time.Second // time to ask for work or to exit; Lambda allows 10 s
	timeoutGrace = time.Second      // time after an invocation's deadline, for busy machines; Lambda allows none
	sigtermGrace = 5 * time.Second  // time between SIGTERM and SIGKILL, for busy machines; Lambda allows 500 ms
)

// Instance is one running copy of a function. Several goroutines may call its
// methods at the same time. As on Lambda, an instance handles one invocation at
// a time, and further invocations wait.
type Instance struct {
	name    string
	api     *runtimeAPI
	server  *httptest.Server
	cmd     *exec.Cmd
	started time.Time
	log     string        // path of the file with stdout and stderr
	exited  chan struct{} // closed when the process has ended
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
	// This is a file because a pipe would deliver the output later than the
	// answer. What the function writes before its answer is in the file when
	// the answer arrives.
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor

	name, dir := filepath.Base(binary), t.TempDir()
	i := &Instance{name: name, log: log.Name(), exited: make(chan struct{})}
	i.api = newRuntimeAPI("arn:aws:lambda:" + region + ":000000000000:function:" + name)
	i.server = httptest.NewServer(i.api.handler())

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
		_ = i.cmd.Wait() // ProcessState holds the result
	}()
	t.Cleanup(func() {
		i.Stop()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, i.Logs())
		}
	})
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

// Exit describes how a process ended.
type Exit struct {
	Code int // -1 if a signal ended it
	Logs string
}

// Exit waits until the function exits by itself, for example because a variable
// has a wrong value.
func (i *Instance) Exit(t testing.TB) Exit {
	t.Helper()
	select {
	case <-i.exited:
	case <-time.After(initLimit):
		t.Fatalf("%s is still running after %v; it wrote:\n%s", i.name, initLimit, i.Logs())
	}
	return Exit{Code: i.cmd.ProcessState.ExitCode(), Logs: i.Logs()}
}

// Logs returns what the function has written to stdout and stderr. When Invoke
// returns, it includes everything that the function wrote in that invocation.
func (i *Instance) Logs() string {
	b, err := os.ReadFile(i.log)
	if err != nil {
		return fmt.Sprintf("lambdatest: %v", err)
	}
	return string(b)
}

// Memory returns how many bytes of memory the running function has now. It
// works only on Linux.
func (i *Instance) Memory() (bytes int64, err error) { return MemoryOf(i.PID()) }

// MemoryOf returns how many bytes of memory a process has now. It works only on
// Linux.
func MemoryOf(pid int) (bytes int64, err error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var virtual, resident int64 // pages
	if _, err := fmt.Sscan(string(statm), &virtual, &resident); err != nil {
		return 0, err
	}
	return resident * int64(os.Getpagesize()), nil
}

// PID returns the id of the function's process.
func (i *Instance) PID() int { return i.cmd.Process.Pid }

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
		_ = i.cmd.Process.Kill() // an error means that it has ended already
		<-i.exited
		close(i.api.stopping)
		i.server.CloseClientConnections()
		i.server.Close()
	})
}

func (i *Instance) errExited(when string) error {
	return fmt.Errorf("%s ended %s (%v); it wrote:\n%s", i.name, when, i.cmd.ProcessState, i.Logs())
}
