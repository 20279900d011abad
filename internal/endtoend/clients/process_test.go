package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A process is a running app. Its output can be read while it runs.
type process struct {
	cmd   *exec.Cmd
	log   string        // the file with its output
	ended chan struct{} // closed when it has ended
}

// run starts a program in the folder of the project. It is interrupted when the
// test ends. An entry of env such as "AWS_REGION=" removes the variable.
func run(t testing.TB, env []string, name string, args ...string) *process {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // the process has its own descriptor
	cmd := command(t, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, out, out
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1", "PORT=0")
	for _, set := range env {
		if name, value, _ := strings.Cut(set, "="); value == "" {
			cmd.Env = without(cmd.Env, name)
		} else {
			cmd.Env = append(cmd.Env, set)
		}
	}
	stop := start(t, cmd)
	p := &process{cmd, out.Name(), make(chan struct{})}
	go func() { stop(); close(p.ended) }()
	t.Cleanup(func() {
		<-p.ended
		if t.Failed() {
			t.Logf("%s wrote:\n%s", cmd, p)
		}
	})
	return p
}

// String returns the output until now.
func (p *process) String() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

var listening = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// url waits until the process prints its URL, and returns it. It returns an empty
// string if the process ends without one.
func (p *process) url(t testing.TB) (found string) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; {
		select {
		case <-p.ended:
			return listening.FindString(p.String())
		case <-time.After(10 * time.Millisecond):
		}
		if found = listening.FindString(p.String()); found != "" {
			return found
		}
		if time.Now().After(late) {
			t.Fatalf("%s printed no URL in a minute", p.cmd)
		}
	}
}

// tookForAnOutage reports whether an app logged an outage. A busy machine can
// look like one.
func (p *process) tookForAnOutage() bool { return strings.Contains(p.String(), "did not answer") }

// status waits until the process ends, and returns its exit status.
func (p *process) status(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatalf("%s still runs after a minute", p.cmd)
	}
	return p.cmd.ProcessState.ExitCode()
}
