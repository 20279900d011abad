package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
)

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]error{"y\n": nil, "Yes\n": nil, " y": nil, "n\n": errDeclined, "\n": errDeclined, "": errDeclined, "yes please\n": errDeclined} {
		var asked strings.Builder
		err := new(questionFlags).confirm(t.Context(), console{in: strings.NewReader(answer), out: io.Discard, err: &asked}, "Delete?")
		if !errors.Is(err, want) || asked.String() != "Delete? [y/N] " {
			t.Errorf("%q after %q: %v, want %v", answer, &asked, err, want)
		}
	}
	for _, f := range []questionFlags{{Yes: true}, {DryRun: true}} {
		if err := f.confirm(t.Context(), console{}, "Delete?"); err != nil {
			t.Errorf("%+v: %v, want no question", f, err)
		}
	}
	if err := new(questionFlags).confirm(t.Context(), console{}, "Delete?"); err == nil {
		t.Error("nobody is there to ask, and it goes on")
	}
}

// A no is not a fault of the command line, and no success either: what comes
// after && must not go on as if all were deleted. Ctrl-C is the same wish.
func TestWhoDeclinesEndsTheCommand(t *testing.T) {
	var log stream
	status := run(t.Context(), []string{"erase", "--user", "u1"}, console{in: strings.NewReader("n\n"), err: &log})
	if status != interrupted || log.String() != "Delete everything that is kept of this user? [y/N] guards: nothing was deleted\n" {
		t.Errorf("status %d: %s", status, &log)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	silent, says := io.Pipe()
	defer func() { _ = says.Close() }()
	log = stream{}
	time.AfterFunc(10*time.Millisecond, interrupt)
	if status := run(ctx, []string{"cleanup"}, console{in: silent, err: &log}); status != interrupted || log.String() != "Delete everything that has expired? [y/N] \n" {
		t.Errorf("Ctrl-C at the question: status %d: %s", status, &log)
	}
}

// What Ctrl-C breaks off fails in its own way, which is nobody's outage.
func TestWhoInterruptsSeesNoError(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, command := range []string{"status --user u1", "stats", "cleanup --yes", "erase --user u1 --yes", "reset create_post --user u1 --yes"} {
		var log stream
		args := append(strings.Fields(command), "--region", "us-east-1", "--endpoint", "http://127.0.0.1:1")
		if status := run(ctx, args, console{out: io.Discard, err: &log}); status != interrupted || log.String() != "" {
			t.Errorf("guards %s: status %d, %s", command, status, &log)
		}
	}
}

func TestStandings(t *testing.T) {
	const now = 1_700_000_058_000 // 18 s into window 28333334
	items := map[ratelimit.Key]ratelimit.Item{
		{UserID: "u1", Activity: "create_post", Window: 28_333_334}: {State: ratelimit.State{"activityCount": 10}},
		{UserID: "u1", Activity: "update_post", Window: 28_333_333}: {State: ratelimit.State{"activityCount": 10}}, // has passed
	}
	got := map[string]standing{}
	for _, s := range standings("u1", "", items, nil, time.UnixMilli(now)) {
		got[s.Activity] = s
	}
	if _, ok := got["like"]; ok {
		t.Error("like is never counted, and stands there")
	}
	for activity, want := range map[string]standing{
		"create_post": {"posts-guard", "create_post", 10, 10, 0, 42_000, 1_700_000_100_000},
		"update_post": {"posts-guard", "update_post", 10, 0, 10, 0, 1_700_000_100_000},
	} {
		if diff := cmp.Diff(want, got[activity]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", activity, diff)
		}
	}
}
