// Package needs finds what a test needs from outside. If something is missing,
// it skips the test. With CI=true it fails the test instead, because nobody would
// notice a skipped test there.
package needs

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Skip skips the test, or fails it with CI=true. The reason names what is missing
// and the way to get it.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// Client returns the path of something that make clients has installed: AWS's
// own clients. It is for tests in a folder of internal.
func Client(t testing.TB, name string) string {
	t.Helper()
	return installed(t, "clients", filepath.Join(cache, "clients"), name)
}

// Package returns the path of something that make packages has installed for a
// language, or for the examples. It is for tests in a folder of internal.
func Package(t testing.TB, language, name string) string {
	t.Helper()
	packages := cmp.Or(os.Getenv("GUARDS_PACKAGES"), filepath.Join(cache, "packages"))
	return installed(t, "packages", filepath.Join(packages, language), name)
}

const cache = "../../.cache"

func installed(t testing.TB, target, folder, name string) string {
	t.Helper()
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "installed")); err != nil {
		Skip(t, folder+" is missing: run make "+target)
	}
	return filepath.Join(folder, name)
}

// Files returns the content of each file of the project by its name. These are
// the files that are in the repository or would be after git add.
func Files(t testing.TB, root string) map[string][]byte {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skip("only git knows which files belong to the project, and git ls-files failed: ", err)
	}
	contents := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) { // deleted, but not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		contents[name] = content
	}
	return contents
}

// Copy copies the project's files into a new folder, and returns it.
func Copy(t testing.TB, root string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range Files(t, root) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o700); err != nil { // scripts must run
			t.Fatal(err)
		}
	}
	return dir
}
