package main

import (
	"strings"
	"testing"
)

// The SDK's own client, through the command that uses it.
func TestVerifyThroughServe(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	endpoint, _ := serve(t)
	var out, log stream
	args := []string{"verify", "create_room", "--endpoint-url", endpoint, "--region", "us-east-1", "--callers", "16"}
	if status := run(t.Context(), args, console{out: &out, err: &log}); status != done || !strings.HasPrefix(out.String(), "create_room: 10 of 26 allowed, exactly the limit") {
		t.Errorf("status %d: %s%s", status, &out, &log)
	}
	// Its user is gone.
	if r := post(t, invocations(endpoint, "cleanup"), `{"dryRun": true}`); !strings.Contains(r.body, `"scanned":0`) {
		t.Errorf("verify left something: %s", r.body)
	}
	var told stream
	if status := run(t.Context(), append(args, "--function", "pots-guard"), console{out: &told, err: &log}); status != unreachable {
		t.Errorf("a function that is not there: status %d: %s", status, &log)
	}
}

func TestVerdict(t *testing.T) {
	for allowed, want := range map[int]int{10: done, 11: refused, 9: refused} {
		var out stream
		v := verdict{Activity: "create_post", Limit: 10, Asked: 60, Allowed: allowed, Exact: allowed == 10}
		if status := fail(console{err: &out}, v.print(console{out: &out}, false)); status != want {
			t.Errorf("%s: status %d, want %d", &out, status, want)
		}
	}
}
