package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cric-talk/guards/internal/dynamotest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"guards": main})
}

// TestScripts drives the real program by scripts, one for each command.
func TestScripts(t *testing.T) {
	endpoint := os.Getenv("DYNAMODB_ENDPOINT")
	var table string
	if endpoint != "" {
		table = dynamotest.Table(t)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			// Scripts count in minutes of the real clock: not around its turn.
			if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); left < 5*time.Second {
				time.Sleep(left)
			}
			for name, value := range map[string]string{
				"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
				"DYNAMODB_ENDPOINT": endpoint, "TABLE": table,
			} {
				env.Setenv(name, value)
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "dynamodb" {
				return false, errors.New("unknown condition")
			}
			return endpoint != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
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

// What README shows of the command is what it prints, but for the time to wait.
func TestReadmeShowsWhatTheCommandPrints(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```sh\ngo run ./cmd/guards ([^\n]*)\n```\n\n```text\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(shown) == 0 {
		t.Fatal("README shows no command with its output")
	}
	wait := regexp.MustCompile(`wait [0-9]+ m?s`)
	for _, s := range shown {
		var out, log stream
		run(t.Context(), strings.Fields(s[1]), console{out: &out, err: &log})
		if got, want := wait.ReplaceAllString(out.String(), "wait"), wait.ReplaceAllString(s[2], "wait"); got != want {
			t.Errorf("guards %s prints\n%s%swhere README shows\n%s", s[1], got, &log, want)
		}
	}
}
