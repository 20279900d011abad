package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
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
		t.Error("there is nobody to ask, and the command continues")
	}
}

// A declined question is not a mistake, but it is not a success either: in a shell,
// the command after && must not run as if everything had been deleted. Ctrl-C at the
// question means the same.
func TestDecliningEndsTheCommand(t *testing.T) {
	credentials(t)
	where := []string{"--table", "t1", "--region", "eu-west-1", "--endpoint", "http://127.0.0.1:1"}
	in := "in the table t1 in eu-west-1 at http://127.0.0.1:1? [y/N] "
	for question, command := range map[string][]string{
		"Delete everything about u1 ":         {"erase", "--user", "u1"},
		"Delete everything that has expired ": {"cleanup"},
		"Clear create_post of u1 ":            {"reset", "--user", "u1", "create_post"},
	} {
		var log stream
		status := run(t.Context(), append(command, where...), console{in: strings.NewReader("n\n"), err: &log})
		if want := question + in + "guards: nothing was deleted\n"; status != interrupted || log.String() != want {
			t.Errorf("guards %v: status %d, %q, want %q", command, status, &log, want)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		silent, writer := io.Pipe()
		log = stream{}
		time.AfterFunc(10*time.Millisecond, interrupt)
		status = run(ctx, append(command, where...), console{in: silent, err: &log})
		if status != interrupted || log.String() != question+in+"\n" {
			t.Errorf("guards %v and Ctrl-C at the question: status %d, %q", command, status, &log)
		}
		_ = writer.Close()
	}
}

// A command that Ctrl-C stops fails in some way, but that is not an outage.
func TestInterruptedCommandsPrintNoError(t *testing.T) {
	credentials(t)
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
