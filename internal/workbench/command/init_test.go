package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A question about a folder of something else, answered with no, changes nothing.
func TestInitAsksBeforeItWritesAmongOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "package.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	checkout := filepath.Join("..", "..", "..")
	var out, log stream
	args := []string{"init", dir, "--guard", "photos-guard", "--activity", "upload_photo", "--limit", "5/1m", "--module", "mine", "--replace", checkout}
	status := run(t.Context(), args, session{page: content, in: strings.NewReader("n\n"), out: &out, err: &log, now: atPinned})
	const want = "has other files: package.json. Make the project among them? [y/N] guards: nothing was changed\n"
	entries, err := os.ReadDir(dir)
	if status != interrupted || out.String() != "" || !strings.HasSuffix(log.String(), want) || len(entries) != 1 || err != nil {
		t.Errorf("status %d, %q, %q, %v in the folder (%v), want %d, %q and the one file", status, out.String(), log.String(), entries, err, interrupted, want)
	}
}
