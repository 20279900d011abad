package command

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/scripted"
	app "github.com/cric-talk/guards/limits"
)

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
