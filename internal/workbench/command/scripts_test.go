package command

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/limits"
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

// scripted runs the program with the clock of a script, which the script sets
// in the variable NOW. GUARDS can name a file of JSON with the guards that the
// program was built from. By default, they are those of this project. The program
// itself does not read these variables.
func scripted() {
	guards := limits.All
	if file := os.Getenv("GUARDS"); file != "" {
		guards = nil
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &guards)
		}
		if err != nil {
			panic(err)
		}
	}
	now, err := time.Parse(time.RFC3339, os.Getenv("NOW"))
	if err != nil {
		panic(err)
	}
	c := terminal(guards)
	c.now = func() time.Time { return now }
	os.Exit(program(c))
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
				"NOW="+pinned.Format(time.RFC3339),
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
