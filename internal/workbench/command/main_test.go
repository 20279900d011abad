package command

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/scripted"
	app "github.com/cric-talk/guards/limits"
)

// pinned is what the clock of all tests shows, so that no test depends on the
// real time or waits for the next minute. It is 18 s into window 28333334, as
// in README. It is long past, so a table with TTL would delete each item at
// once.
var pinned = time.Unix(1_700_000_058, 0).UTC()

func atPinned() time.Time { return pinned }

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"guards": script, "aws": fakeAWS, "go": fakeGo})
}

// fakeGo stands for the go command, which downloads modules. It fails if GO_FAILS is
// set, with this text.
func fakeGo() {
	text := os.Getenv("GO_FAILS")
	if text == "" {
		return
	}
	_, _ = os.Stderr.WriteString(text + "\n")
	os.Exit(1)
}

type tests struct{ *testing.M }

// Run runs the tests without the variables and files that configure the
// developer's own guards and AWS CLI.
func (t tests) Run() int {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "AWS_") {
			_ = os.Unsetenv(name)
		}
	}
	for _, name := range append(settings, "TABLE_NAME", "NO_COLOR") {
		_ = os.Unsetenv(name)
	}
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		_ = os.Setenv(name, os.DevNull)
	}
	return t.M.Run()
}

// credentials sets credentials that DynamoDB Local and guards serve accept.
func credentials(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
}

// TestScripts runs the real program in scripts, at least one for each command.
func TestScripts(t *testing.T) {
	p := scripts()
	p.Dir = "testdata/script"
	p.Condition = func(name string) (bool, error) {
		if name != "dynamodb" {
			return false, errors.New("unknown condition")
		}
		return os.Getenv("DYNAMODB_ENDPOINT") != "", nil
	}
	testscript.Run(t, p)
}

// script runs the program of this project or, if GUARDS_PROGRAM names one, the
// program of another project with the same limits.
func script() {
	program := os.Getenv("GUARDS_PROGRAM")
	if program == "" {
		scripted.Main(app.All, Main)
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		panic(err)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// scripts returns the parameters of scripts: the clock, the variables that the
// program reads, and more variables. Scripts run at the same time, so each has
// a table of its own.
func scripts(more ...string) testscript.Params {
	return testscript.Params{
		Setup: func(env *testscript.Env) error {
			endpoint, table := "http://127.0.0.1:1", "no-such-table" // nothing listens there
			if os.Getenv("DYNAMODB_ENDPOINT") != "" {
				t, ok := env.T().(testing.TB)
				if !ok {
					return errors.New("the script does not run in a test")
				}
				endpoint, table = dynamotest.Endpoint(t), dynamotest.Table(t)
			}
			env.Vars = append(env.Vars,
				"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
				"AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "TABLE_NAME="+table,
				"NOW="+pinned.Format(time.RFC3339), "GUARDS_PROGRAM="+os.Getenv("GUARDS_PROGRAM"),
				"GORACE=atexit_sleep_ms=0", // without it, each command sleeps a second at its end
			)
			env.Vars = append(env.Vars, more...)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	}
}

// status runs a command and checks its exit status: status 3 guards check ...
func status(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg {
		ts.Fatalf("usage: status N command")
	}
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got, err = exit.ExitCode(), nil
	}
	if err != nil || got != want {
		ts.Fatalf("exit status %d, %v, want %d", got, err, want)
	}
}
