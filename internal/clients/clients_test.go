// Package clients_test has AWS's own programs meet this project's: the AWS CLI
// and the SDKs invoke every function through guards serve, the examples of
// docs/calling.md run as they stand there, and AWS's emulator of the runtime
// runs a guard's binary. Make clients fetches these programs.
package clients_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/lambdatest"
)

const root = "../.."

// fetched is a path of what make clients has fetched. Without it the test is
// skipped, except with CI=true, where it fails.
func fetched(t testing.TB, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, ".cache", "clients"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "installed")); err != nil {
		unavailable(t, "AWS's clients are not there: run make clients")
	}
	return filepath.Join(dir, name)
}

func unavailable(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

var serving = regexp.MustCompile(`on (http://[^,]+),`)

// serve runs guards serve, counting in memory unless flags say otherwise, and
// returns its URL.
func serve(t testing.TB, flags ...string) (endpoint string) {
	t.Helper()
	args := append([]string{"serve", "--addr", "127.0.0.1:0"}, flags...)
	cmd := command(t, lambdatest.Build(t, "./cmd/guards"), args...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, cmd)
	lines := bufio.NewReader(log)
	first, err := lines.ReadString('\n')
	rest := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(lines) // all the time: it would wait for a full pipe
		rest <- b
	}()
	t.Cleanup(func() {
		log := <-rest
		if status := stop(); status != 0 {
			t.Errorf("guards serve ended with status %d", status)
		}
		if t.Failed() {
			t.Logf("guards serve wrote:\n%s%s", first, log[max(0, len(log)-4<<10):])
		}
	})
	match := serving.FindStringSubmatch(first)
	if match == nil {
		t.Fatalf("guards serve does not serve: %v", err)
	}
	return match[1]
}

// inTable are the flags for counting in a table of the test's own.
func inTable(t testing.TB) (flags []string) {
	t.Helper()
	return []string{"--store", "dynamodb", "--endpoint", dynamotest.Endpoint(t), "--region", "us-east-1", "--table", dynamotest.Table(t)}
}

// command is one that is interrupted, and soon after killed, when the test
// ends. It sees nothing of the test's environment but its DynamoDB.
func command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = []string{
		"DECISION_TIMEOUT=5s", // a busy machine is no outage
		"HOME=" + t.TempDir(), // no one's ~/.aws is read
		"PATH=/usr/bin:/bin",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ENDPOINT_URL_DYNAMODB=" + os.Getenv("DYNAMODB_ENDPOINT"),
	}
	return cmd
}

// start starts cmd. When the test has ended, stop waits for it and returns its
// exit status, -1 where it was killed.
func start(t testing.TB, cmd *exec.Cmd) (stop func() int) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() int {
		_ = cmd.Wait() // how it ended is in its ProcessState
		return cmd.ProcessState.ExitCode()
	}
}

// An end is how a command ended.
type end struct {
	status         int // -1: it was killed
	stdout, stderr string
}

// patience is what a client has that would wait for ever: then it is killed.
const patience = 2 * time.Minute

// finish runs cmd to its end.
func finish(t testing.TB, cmd *exec.Cmd) end {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return end{}
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Errorf("%v: %v", cmd, err)
	}
	return end{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}
