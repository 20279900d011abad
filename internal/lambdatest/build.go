// Package lambdatest drives a function's real binary as Lambda does: one
// process for each instance, each under a Runtime API of its own, in an
// environment that inherits nothing.
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
	"strings"
	"sync"
	"testing"
)

// Build compiles a function with the flags it is deployed with, but for this
// machine, and returns the path of the binary. pkg is an import path or, as in
// "./functions/posts-guard", a path from the module's root. A process compiles
// each package once; what is still up to date is not even linked again.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	once, _ := builds.LoadOrStore(pkg, sync.OnceValues(func() (string, error) { return build(pkg) }))
	binary, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var builds sync.Map // package as given to Build -> its func() (string, error)

func build(pkg string) (binary string, err error) {
	root, err := moduleRoot()
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
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags=-s -w", "-o", binary, pkg)
	cmd.Dir = root
	// On one file system go replaces the binary in one step, under the feet of
	// no other test process that is just starting it.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOTMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

var moduleRoot = sync.OnceValues(func() (string, error) {
	out, err := run("", "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	if out == "" || out == os.DevNull {
		return "", fmt.Errorf("find the module: no go.mod above the test's directory")
	}
	return filepath.Dir(out), nil
})

// declareInputs opens the directories of this module that pkg is made of.
// Package testing notes each file a test opens and go test repeats the test
// once it has changed; of what the compiler reads it would know nothing, and
// would pass a changed function on its last result.
func declareInputs(root, pkg string) error {
	dirs, err := run(root, "go", "list", "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}`, pkg)
	if err != nil {
		return err
	}
	for name := range strings.FieldsFuncSeq(dirs+"\n"+filepath.Join(root, "go.mod"), isNewline) {
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

func isNewline(r rune) bool { return r == '\n' }

// outputDir is in the user's cache, one for each package of each checkout: the
// next process finds the binary, nothing piles up, and go test, which looks for
// changes in the module only, does not take a new binary for one.
func outputDir(root, pkg string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the binaries: %w", err)
	}
	sum := sha256.Sum256([]byte(root + "\x00" + pkg))
	dir := filepath.Join(cache, "guards-lambdatest", hex.EncodeToString(sum[:8]))
	return dir, os.MkdirAll(dir, 0o755)
}

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
