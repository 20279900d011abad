package lambdatest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A Process is a program that a test has started.
type Process struct {
	cmd    *exec.Cmd
	log    string        // path of the file with stdout and stderr
	exited chan struct{} // closed when the process has ended
}

// StartProcess runs binary in the folder dir with this environment, and nothing of the test's. It
// kills it when the test ends. If the test fails then, it logs what the program wrote.
func StartProcess(t testing.TB, binary, dir string, env []string) *Process {
	t.Helper()
	// This is a file because a pipe would deliver the output later than an
	// answer. What a program writes before its answer is in the file when the
	// answer arrives.
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	p := &Process{cmd: exec.Command(binary), log: log.Name(), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = dir, log, log, env
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", binary, err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // ProcessState holds the result
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(binary), p.Logs())
		}
	})
	return p
}

// kill ends the process, if it has not ended already.
func (p *Process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Exit describes how a process ended.
type Exit struct {
	Code int // -1 if a signal ended it
	Logs string
}

// Exit waits until the program exits by itself, for example because a variable
// has a wrong value.
func (p *Process) Exit(t testing.TB) Exit {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(initLimit):
		t.Fatalf("the program is still running after %v; it wrote:\n%s", initLimit, p.Logs())
	}
	return Exit{Code: p.cmd.ProcessState.ExitCode(), Logs: p.Logs()}
}

// Alive reports whether the process still runs.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Logs returns what the program has written to stdout and stderr. When Invoke
// returns, it includes everything that a function wrote in that invocation.
func (p *Process) Logs() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("lambdatest: %v", err)
	}
	return string(b)
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Memory returns how many bytes of memory the running process has now. It
// works only on Linux.
func (p *Process) Memory() (bytes int64, err error) { return MemoryOf(p.PID()) }

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
