package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// A question about a folder of something else, answered with no, changes nothing.
func TestInitAsksBeforeItWritesAmongOtherFiles(t *testing.T) {
	dir := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "package.json"), nil, 0o600))
	checkout := filepath.Join("..", "..", "..")
	args := []string{"init", dir, "--guard", "photos-guard", "--activity", "upload_photo", "--limit", "5/1m", "--module", "mine", "--replace", checkout}
	status, out, log := session{page: content, in: strings.NewReader("n\n"), now: atPinned}.does(t, args...)
	const want = "has other files: package.json. Make the project among them? [y/N] guards: nothing was changed\n"
	entries, err := os.ReadDir(dir)
	if status != interrupted || out != "" || !strings.HasSuffix(log, want) || len(entries) != 1 || err != nil {
		t.Errorf("status %d, %q, %q, %v in the folder (%v), want %d, %q and the one file", status, out, log, entries, err, interrupted, want)
	}
}

// A project without Go needs no go command, and its commands are those of the installed program.
func TestInitWithAPageInJSON(t *testing.T) {
	t.Setenv("GUARDS_PAGE", "")
	t.Setenv("PATH", "")
	dir, checkout := filepath.Join(t.TempDir(), "my-guards"), filepath.Join("..", "..", "..")
	args := []string{"init", dir, "--page", "json", "--guard", "photos-guard", "--activity", "upload_photo", "--limit", "5/1m", "--replace", checkout}
	if status, _, log := guardsIn(t, t.TempDir(), append(args, "--module", "mine")...); status != wrongUse || log != "guards: --module goes with a page in Go\n" {
		t.Errorf("%d, %s", status, log)
	}
	status, out, log := guardsIn(t, t.TempDir(), args...)
	if status != done || !strings.Contains(out, "limits.json") || strings.Contains(out, ".go ") || log != "guards: next: cd "+dir+" && guards check upload_photo --user u1 --times 6\n" {
		t.Errorf("%d, %s%s", status, out, log)
	}
	for line, want := range map[string]int{"generate --check": done, "check upload_photo --user u1 --times 6": refused, "new --guard photos-guard share_photo 5/1m": done} {
		if status, out, log := guardsIn(t, dir, strings.Fields(line)...); status != want {
			t.Errorf("guards %s: %d, %s%s", line, status, out, log)
		}
	}
	if status, _, log := guardsIn(t, dir, "generate", "--check"); status != done {
		t.Errorf("%d, %s", status, log)
	}
}
