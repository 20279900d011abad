package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cric-talk/guards/internal/dynamotest"
)

// pinned is when everything happens: no test depends on when it runs, or waits
// for a minute to begin. It is 18 s into window 28333334, as README has it, and
// long past: a table with TTL would lose each item at once, so none has it.
var pinned = time.Unix(1_700_000_058, 0).UTC()

func atPinned() time.Time { return pinned }

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"guards": scripted, "aws": fakeAWS})
}

type tests struct{ *testing.M }

// Run runs the tests without the settings of whoever started them.
func (t tests) Run() int {
	for _, name := range settings {
		_ = os.Unsetenv(name)
	}
	return t.M.Run()
}

// scripted is main by a script's clock: the variable NOW, which the program
// itself does not read.
func scripted() {
	now, err := time.Parse(time.RFC3339, os.Getenv("NOW"))
	if err != nil {
		panic(err)
	}
	c := terminal()
	c.now = func() time.Time { return now }
	os.Exit(program(c))
}

// TestScripts drives the real program by scripts, one for each command.
func TestScripts(t *testing.T) {
	endpoint := os.Getenv("DYNAMODB_ENDPOINT")
	var table string
	if endpoint != "" {
		table = dynamotest.Table(t)
	}
	p := scripts("DYNAMODB_ENDPOINT="+endpoint, "TABLE="+table)
	p.Dir = "testdata/script"
	p.Condition = func(name string) (bool, error) {
		if name != "dynamodb" {
			return false, errors.New("unknown condition")
		}
		return endpoint != "", nil
	}
	testscript.Run(t, p)
}

// scripts are what scripts run with: the program's clock, the variables that it
// reads, and more.
func scripts(more ...string) testscript.Params {
	return testscript.Params{
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars,
				"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
				"NOW="+pinned.Format(time.RFC3339),
				"GORACE=atexit_sleep_ms=0", // else each command sleeps a second at its end
			)
			env.Vars = append(env.Vars, more...)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	}
}

// status runs a command and wants its exit status: status 3 guards check ...
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

func TestWait(t *testing.T) {
	for _, tt := range []struct {
		ms   int64
		want string
	}{
		{1, "1 ms"}, {999, "999 ms"}, {1000, "1 s"}, {41001, "42 s"}, {119_000, "119 s"}, {120_000, "2 min"},
		{120_001, "3 min"}, {7_140_000, "119 min"}, {7_200_000, "2 h 0 min"}, {43_199_999, "12 h 0 min"},
	} {
		if got := wait(time.Duration(tt.ms) * time.Millisecond); got != tt.want {
			t.Errorf("wait of %d ms is %q, want %q", tt.ms, got, tt.want)
		}
	}
}
