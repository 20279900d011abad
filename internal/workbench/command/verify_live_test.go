package command

import (
	"io"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/limits"
)

// A mode that refuses no request can't be verified.
func TestVerifyInALiveMode(t *testing.T) {
	credentials(t)
	where := []string{"--region", "us-east-1", "--endpoint", dynamotest.Endpoint(t), "--table", dynamotest.Table(t)}
	for mode, want := range map[string]string{
		"off":    "guards: create_room is not limited now: the guard answers unlimited\n",
		"shadow": "guards: create_room is in shadow mode, in which the guard refuses nobody: set the mode to enforce, and try again\n",
	} {
		set := append([]string{"limits", "set", "create_room", "--mode", mode, "--yes"}, where...)
		if status := run(t.Context(), set, session{guards: limits.All, out: io.Discard, err: io.Discard, now: atPinned}); status != done {
			t.Fatalf("mode %s: status %d", mode, status)
		}
		var out, log stream
		verify := append([]string{"verify", "create_room", "--callers", "5", "--store", "dynamodb"}, where...)
		status := run(t.Context(), verify, session{guards: limits.All, out: &out, err: &log, now: atPinned})
		if status != wrongUse || out.String() != "" || log.String() != want {
			t.Errorf("mode %s: status %d, %s%s, want %d, %s", mode, status, &out, &log, wrongUse, want)
		}
	}
}

// A guard that runs with MODE=off or MODE=shadow has the same errors.
func TestVerifyOfAGuardInAMode(t *testing.T) {
	credentials(t)
	for mode, want := range map[string]string{"off": "is not limited now", "shadow": "is in shadow mode"} {
		t.Setenv("MODE", mode)
		endpoint, _ := serve(t)
		var out stream
		args := []string{"verify", "create_room", "--lambda-endpoint", endpoint, "--region", "us-east-1"}
		if status := run(t.Context(), args, session{guards: limits.All, out: &out, err: &out, now: atPinned}); status != wrongUse || !strings.Contains(out.String(), want) {
			t.Errorf("MODE=%s: status %d, %s, want %d, %s", mode, status, &out, wrongUse, want)
		}
	}
}

// A live limit says prepaid itself, and is judged by it.
func TestVerifyOfALivePrepaidLimit(t *testing.T) {
	p := ofContent(t)
	p.guards = busy
	for activity, tt := range map[string][2]string{
		"call":  {"190/1m", "exactly the limit,"},
		"plain": {"300/1m prepaid", "at most the limit of 300, as a prepaid one promises,"},
	} {
		if status, _, log := p.run(`limits set ` + activity + ` "` + tt[0] + `" --yes`); status != done {
			t.Fatal(activity, log)
		}
		if status, out, log := p.run("verify " + activity + " --callers 5 --store dynamodb"); status != done || !strings.Contains(out, " allowed, "+tt[1]) {
			t.Errorf("verify %s: status %d, %s%s, want %q", activity, status, out, log, tt[1])
		}
	}
}
