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
	var path string
	ask := func() *recorder {
		return record(func(t testing.TB) { path = testkit.Package(t, "python", "venv") })
	}
	for ci, skips := range map[string]bool{"": true, "true": false} {
		t.Setenv("CI", ci)
		if r := ask(); !strings.HasSuffix(r.reason, "is missing: run make packages") || r.skipped != skips || r.fatals > 0 == skips {
			t.Errorf("CI=%s: %+v, want it skipped: %v", ci, r, skips)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "python", "installed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := ask(); path != filepath.Join(dir, "python", "venv") || r.reason != "" {
		t.Errorf("path %q, %+v", path, r)
	}
}

func TestATestOfAPartRunsOnlyIfTestsNamesThePart(t *testing.T) {
	for tests, skips := range map[string]bool{"": true, "clients": true, "longer": true, "clients long": false, testkit.AllParts: false} {
		t.Setenv("TESTS", tests)
		r := record(func(t testing.TB) { testkit.Long.Need(t) })
		if r.skipped != skips || skips && r.reason != "make test-long runs this test" || testkit.Bound(1, 2) == 2 == skips {
			t.Errorf("TESTS=%q: %+v and the bound %d, want it skipped: %v", tests, r, testkit.Bound(1, 2), skips)
		}
	}
}
