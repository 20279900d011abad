// Package testkit helps tests. It finds what a test needs from outside, repeats
// tests that depend on the speed of the machine, and measures memory. Its folders
// hold servers and proxies for tests.
//
// If something that a test needs is missing, the test is skipped. With CI=true it
// fails instead, because nobody would notice a skipped test there.
package testkit

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
// own clients.
func Client(t testing.TB, name string) string {
	t.Helper()
	return installed(t, "clients", filepath.Join(root(t), ".cache", "clients"), name)
}

// RuntimeEmulator returns the path of AWS's emulator of Lambda's runtime, which make clients has installed.
func RuntimeEmulator(t testing.TB) string {
	t.Helper()
	machine, ok := map[string]string{"linux/amd64": "x86_64", "linux/arm64": "arm64"}[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		t.Skip("AWS has no runtime emulator for this machine")
	}
	emulator, err := filepath.Glob(Client(t, "venv/lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-"+machine))
	if err != nil || len(emulator) != 1 {
		t.Fatalf("make clients fetched the emulators %q, %v, want one", emulator, err)
	}
	return emulator[0]
}

// Package returns the path of something that make packages has installed for a
// language, or for the examples.
func Package(t testing.TB, language, name string) string {
	t.Helper()
	packages := cmp.Or(os.Getenv("GUARDS_PACKAGES"), filepath.Join(root(t), ".cache", "packages"))
	return installed(t, "packages", filepath.Join(packages, language), name)
}

func installed(t testing.TB, target, folder, name string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, "installed")); err != nil {
		Skip(t, folder+" is missing: run make "+target)
	}
	return filepath.Join(folder, name)
}

// Root returns the folder of the project. Tests run in the folder of their
// package, and commands in the project's.
func Root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("no folder above this one has a go.mod")
		}
	}
}

func root(t testing.TB) string {
	t.Helper()
	folder, err := Root()
	if err != nil {
		t.Fatal(err.Error())
	}
	return folder
}

// Files returns the content of each file of the project by its name. These are
// the files that are in the repository or would be after git add.
func Files(t testing.TB) map[string][]byte {
	t.Helper()
	root := root(t)
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
func Copy(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range Files(t) {
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
