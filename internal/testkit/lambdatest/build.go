// Package lambdatest runs a function's real binary as Lambda does. Each
// instance is one process with its own Runtime API. It sees nothing of the
// test's environment.
package lambdatest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Flags are the flags of go build for a deployed function.
var Flags = []string{"-trimpath", "-buildvcs=false", "-tags=lambda.norpc,nethttpomithttp2", "-ldflags=-s -w"}

// Build compiles a function for this machine, otherwise with the flags of a
// deployment. It returns the path of the binary. pkg is an import path or a
// path from the module's root, such as "./functions/posts-guard". A test
// process builds each package once, and Go does not link a binary again that is
// up to date.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	once, _ := builds.LoadOrStore(pkg, sync.OnceValues(func() (string, error) { return build(pkg) }))
	binary, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var builds sync.Map // from the package as passed to Build to a func() (string, error)

func build(pkg string) (binary string, err error) {
	root, err := run("", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", err
	}
	if err := declareInputs(root, pkg); err != nil {
		return "", err
	}
	dir, err := outputDir(root, pkg)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, path.Base(filepath.ToSlash(pkg)))
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", binary}, Flags, []string{pkg})...)
	cmd.Dir = root
	// With GOTMPDIR on the same file system, go replaces the binary in one
	// step. Otherwise another test process could start a half-written binary.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOTMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// declareInputs opens the source directories of pkg, so that go test knows that
// the test depends on them. Package testing records each file that a test
// opens, and go test runs the test again when one of them changes. It can't see
// what the compiler reads. Without declareInputs it would report a cached
// result for a changed function.
func declareInputs(root, pkg string) error {
	dirs, err := run(root, "go", "list", "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}`, pkg)
	if err != nil {
		return err
	}
	for _, name := range append(strings.Split(dirs, "\n"), filepath.Join(root, "go.mod")) {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("declare the inputs of %s: %w", pkg, err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// outputDir returns the directory for the binary of pkg. It lies in the user's
// cache, one for each package of each checkout. So the next process finds the
// binary, and old binaries don't pile up. It is outside the module, because go
// test would take a new binary in the module for a changed input. The builds of
// package planted, which sets PLANTED, have a directory of their own: other
// tests that run meanwhile must not start a binary with a planted bug.
func outputDir(root, pkg string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a directory for the binaries: %w", err)
	}
	name := root + "\x00" + pkg
	if os.Getenv("PLANTED") != "" {
		name += "\x00planted"
	}
	sum := sha256.Sum256([]byte(name))
	dir := filepath.Join(cache, "guards-lambdatest", hex.EncodeToString(sum[:8]))
	return dir, os.MkdirAll(dir, 0o755)
}

// run returns what a command prints, without white space at the ends.
func run(dir string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
