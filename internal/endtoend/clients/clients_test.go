// Package clients_test tests this project with AWS's own programs:
//
//   - The AWS CLI and the SDKs invoke every function through guards serve.
//   - The samples of docs/calling.md run unchanged.
//   - The apps of the folder examples run, and ask guards serve.
//   - AWS's runtime emulator runs a guard's binary.
//
// make clients fetches these programs. make packages installs this project's own
// clients and what the apps need.
package clients_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

const root = "../../.."

var serving = regexp.MustCompile(`on (http://[^,]+),`)

// serve runs guards serve and returns its URL. Without flags it uses the embedded
// store.
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
		b, _ := io.ReadAll(lines) // the server would block on a full pipe
		rest <- b
	}()
	t.Cleanup(func() {
		log := <-rest
		if status := stop(); status != 130 {
			t.Errorf("guards serve exited with status %d, want 130 after an interrupt", status)
		}
		if t.Failed() {
			t.Logf("guards serve wrote:\n%s%s", first, log[max(0, len(log)-4<<10):])
		}
	})
	match := serving.FindStringSubmatch(first)
	if match == nil {
		t.Fatalf("guards serve printed no address: %q, %v", first, err)
	}
	return match[1]
}

// inTable returns the flags for guards serve to use a new table.
func inTable(t testing.TB) (flags []string) {
	t.Helper()
	return []string{"--store", "dynamodb", "--endpoint", dynamotest.Endpoint(t), "--region", "us-east-1", "--table", dynamotest.Table(t)}
}

// command returns a command that is interrupted when the test ends, and killed
// soon after. It sees only the DynamoDB endpoint of the test's environment.
func command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = []string{
		"DECISION_TIMEOUT=5s", // so that a busy machine does not look like an outage
		"HOME=" + t.TempDir(), // so that no real ~/.aws is read
		"PATH=/usr/bin:/bin",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ENDPOINT_URL_DYNAMODB=" + os.Getenv("DYNAMODB_ENDPOINT"),
	}
	return cmd
}

// without returns an environment without some variables.
func without(env []string, names ...string) []string {
	return slices.DeleteFunc(env, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(names, name)
	})
}

// start starts cmd. When the test has ended, call stop: it waits for the command
// and returns its exit status, or -1 if a signal killed it.
func start(t testing.TB, cmd *exec.Cmd) (stop func() int) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() int {
		_ = cmd.Wait() // ProcessState holds the result
		return cmd.ProcessState.ExitCode()
	}
}

// An end describes how a command ended.
type end struct {
	status         int // -1 if a signal killed it
	stdout, stderr string
}

// patience is how long a client may run before it is killed.
const patience = 2 * time.Minute

// finish runs cmd and waits until it ends.
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
