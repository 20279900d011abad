package testkit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestWhatIsMissingSkipsTheTestOrFailsItInCI(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GUARDS_PACKAGES", dir)
	ask := func() (skipped, failed, path string) {
		skipped, failed = testkit.Ended(func(t testing.TB) { path = testkit.Package(t, "python", "venv") })
		return skipped, failed, path
	}
	t.Setenv("CI", "")
	if skipped, failed, _ := ask(); !strings.HasSuffix(skipped, "is missing: run make packages") || failed != "" {
		t.Errorf("skipped %q, failed %q", skipped, failed)
	}
	t.Setenv("CI", "true")
	if skipped, failed, _ := ask(); !strings.HasSuffix(failed, "is missing: run make packages") || skipped != "" {
		t.Errorf("with CI=true: skipped %q, failed %q", skipped, failed)
	}
	if err := os.MkdirAll(filepath.Join(dir, "python", "installed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if skipped, failed, path := ask(); path != filepath.Join(dir, "python", "venv") || skipped+failed != "" {
		t.Errorf("path %q, skipped %q, failed %q", path, skipped, failed)
	}
}

func TestACopyHasTheProjectsFiles(t *testing.T) {
	dir := testkit.Copy(t)
	for _, name := range []string{"go.mod", "scripts/test", "internal/testkit/needs_test.go"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".cache")); err == nil {
		t.Error("the copy has files that Git ignores")
	}
}
