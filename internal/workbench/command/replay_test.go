package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/limits"
)

// Ctrl-C prints the figures so far, even while it waits for a pipe.
func TestReplayPrintsWhatWasDone(t *testing.T) {
	for name, flags := range map[string][]string{"a report": nil, "a comparison": {"--compare", "log 20/1m"}} {
		ctx, cancel := context.WithCancel(t.Context())
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stdin := os.Stdin
		os.Stdin = in
		go func() { // the pipe holds less than this, so most of it has been read when the writing ends
			_, _ = out.WriteString("time,user\n")
			for i := range 100_000 {
				_, _ = fmt.Fprintf(out, "%d,u%d\n", 1_767_614_400_000+i, i%100)
			}
			cancel()
		}()
		var result, log stream
		status := run(ctx, append([]string{"replay", "-", "--activity", "create_post", "--limit", "20/1m"}, flags...), session{guards: limits.All, out: &result, err: &log})
		os.Stdin = stdin
		_ = out.Close()
		if status != interrupted || !strings.Contains(result.String(), " requests of 100 users from 2026-01-05 12:00:00 UTC to ") ||
			!strings.HasPrefix(log.String(), "guards: stopped before the end: the figures are those of the requests until 2026-01-05 12:0") {
			t.Errorf("%s: exit status %d, %q, %q, want %d and the figures so far", name, status, &log, &result, interrupted)
		}
	}
}

// Nothing is left of a target that was checked, and of temporary files.
func TestReplayLeavesNoFiles(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	traffic := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(traffic, []byte("time,user\n1767614400,u1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log stream
	for _, flags := range [][]string{{"--suggest", "99%"}, {"--plot", filepath.Join(folder, "out.svg"), "--user", "u2"}} {
		_ = run(t.Context(), append([]string{"replay", traffic, "--activity", "create_post"}, flags...), session{guards: limits.All, out: &out, err: &log})
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 || !strings.Contains(out.String(), "1/1m is the lowest limit") {
		t.Errorf("%v are left, %v\n%s%s", left, err, &out, &log)
	}
}
