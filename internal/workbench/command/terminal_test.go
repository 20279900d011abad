package command

import (
	"os"
	"strings"
	"testing"

	app "github.com/cric-talk/guards/limits"
)

// A terminal shows the progress of a long task and clears it at the end. A file
// gets no progress.
func TestOnlyTerminalsShowProgress(t *testing.T) {
	p := ofApp(t)
	at := func(progress bool, args ...string) (out, log string) {
		var o, l stream
		if status := run(t.Context(), append(args, p.where...), session{page: app.All, out: &o, err: &l, progress: progress, now: atPinned}); status != done {
			t.Fatalf("guards %v: status %d: %s", args, status, &l)
		}
		return o.String(), l.String()
	}
	p.does("check create_post --user u1 --store dynamodb")
	for last, args := range map[string][]string{
		"[################] 100 %  1 items of 1 users":              {"stats"},
		"[################] 100 %  1 items, 0 to delete, 0 deleted": {"cleanup", "--dry-run"},
	} {
		shown, log := at(true, args...)
		lines := strings.Split(log, "\r")
		if n := len(lines); n < 64 || lines[n-2] != last+clearRest || lines[n-1] != clearRest {
			t.Errorf("guards %v shows %q on a terminal, want it to end with %q", args, log, last)
		}
		if filed, log := at(false, args...); log != "" || filed != shown {
			t.Errorf("guards %v prints %q and %q to files, want %q and nothing", args, filed, log, shown)
		}
	}
}

func TestColorful(t *testing.T) {
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	if colorful(pipe) {
		t.Error("a pipe counts as a terminal")
	}
	for setting, want := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		t.Setenv("NO_COLOR", "")
		t.Setenv("TERM", "xterm")
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
		if wantsColors() != want {
			t.Errorf("%s: colours on a terminal: %v, want %v", setting, !want, want)
		}
	}
	if got := (session{}).paint(red, "refused"); got != "refused" {
		t.Errorf("%q has colours, but the console shows none", got)
	}
	if got := (session{color: true}).paint(red, "refused"); got != "\x1b[31mrefused\x1b[0m" {
		t.Errorf("%q, want it red", got)
	}
}
