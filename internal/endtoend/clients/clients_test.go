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
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/internal/testkit"
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
	log := testkit.Must(cmd.StderrPipe())(t)
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
	testkit.OK(t, cmd.Start())
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

// A call is one invocation of a function.
type call struct {
	Function string          `json:"function"`
	Event    json.RawMessage `json:"event"`
}

// An outcome is what a client returned for an invocation.
type outcome struct {
	Exception     string // the name of the client's exception; the other fields are empty then
	FunctionError string
	Payload       json.RawMessage
}

func (o outcome) String() string { return o.Exception + o.FunctionError + string(o.Payload) }

// A client makes calls and returns the outcome of each.
type client func(t testing.TB, endpoint string, calls []call) []outcome

var clients = map[string]client{
	"AWS CLI":            byScript("cli.py"),
	"boto3":              byScript("invoke.py"),
	"SDK for Go":         byGo,
	"SDK for JavaScript": byScript("invoke.mjs"),
}

// byScript returns a client that makes all calls in one process. The script reads
// and writes JSON.
func byScript(file string) client {
	return func(t testing.TB, endpoint string, calls []call) (outcomes []outcome) {
		t.Helper()
		source := testkit.Must(os.ReadFile(filepath.Join("testdata", file)))(t)
		cmd := install(t, file, string(source)).command(t, endpoint, "2") // two calls at the same time
		cmd.Stdin = bytes.NewReader(testkit.Must(json.Marshal(calls))(t))
		ended := finish(t, cmd)
		if err := json.Unmarshal([]byte(ended.stdout), &outcomes); err != nil || len(outcomes) != len(calls) {
			t.Fatalf("%s exited with status %d: %v\n%s", file, ended.status, err, ended.stderr)
		}
		return outcomes
	}
}

// byGo makes the calls with the SDK for Go.
func byGo(t testing.TB, endpoint string, calls []call) (outcomes []outcome) {
	t.Helper()
	functions := lambda.NewFromConfig(dynamotest.Config(endpoint))
	for _, c := range calls {
		out, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &c.Function, Payload: c.Event})
		if failed, ok := errors.AsType[smithy.APIError](err); ok {
			outcomes = append(outcomes, outcome{Exception: failed.ErrorCode()})
			continue
		}
		testkit.OK(t, err)
		outcomes = append(outcomes, outcome{FunctionError: aws.ToString(out.FunctionError), Payload: out.Payload})
	}
	return outcomes
}

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
	out := testkit.Must(os.Create(filepath.Join(t.TempDir(), "log")))(t)
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
