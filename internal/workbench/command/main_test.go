package command

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
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
