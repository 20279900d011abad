package needs_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cric-talk/guards/internal/needs"
)

// An outcome records how a test ended.
type outcome struct {
	testing.TB
	skipped, failed string
}

func (o *outcome) Helper()           {}
func (o *outcome) Skip(args ...any)  { o.skipped = args[0].(string); runtime.Goexit() }
func (o *outcome) Fatal(args ...any) { o.failed = args[0].(string); runtime.Goexit() }

func TestWhatIsMissingSkipsTheTestOrFailsItInCI(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GUARDS_PACKAGES", dir)
	ask := func() (o outcome, path string) {
		var wg sync.WaitGroup
		wg.Go(func() { path = needs.Package(&o, "python", "venv") })
		wg.Wait()
		return o, path
	}
	t.Setenv("CI", "")
	if o, _ := ask(); !strings.HasSuffix(o.skipped, "is missing: run make packages") || o.failed != "" {
		t.Errorf("skipped %q, failed %q", o.skipped, o.failed)
	}
	t.Setenv("CI", "true")
	if o, _ := ask(); !strings.HasSuffix(o.failed, "is missing: run make packages") || o.skipped != "" {
		t.Errorf("with CI=true: skipped %q, failed %q", o.skipped, o.failed)
	}
	if err := os.MkdirAll(filepath.Join(dir, "python", "installed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if o, path := ask(); path != filepath.Join(dir, "python", "venv") || o.skipped+o.failed != "" {
		t.Errorf("path %q, skipped %q, failed %q", path, o.skipped, o.failed)
	}
}

func TestACopyHasTheProjectsFiles(t *testing.T) {
	dir := needs.Copy(t, "../..")
	for _, name := range []string{"go.mod", "scripts/test", "internal/needs/needs_test.go"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".cache")); err == nil {
		t.Error("the copy has files that Git ignores")
	}
}
