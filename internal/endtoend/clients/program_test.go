package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A program is an example or a script, ready to run in its own directory.
type program struct {
	dir string
	run []string
	env []string // in addition to the environment of all commands
}

// install writes source to a file and prepares the program. The file's extension
// determines the language.
func install(t testing.TB, file, source string) program {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, file)
	testkit.OK(t, os.WriteFile(path, []byte(source), 0o600))
	switch filepath.Ext(file) {
	case ".go":
		return program{dir: dir, run: []string{compile(t, path)}}
	case ".mjs":
		modules := testkit.Client(t, "node_modules")
		if strings.Contains(source, "@cric-talk/guards") {
			modules = testkit.Package(t, "typescript", "node_modules")
		}
		if strings.Contains(source, `from "express"`) || strings.Contains(source, `from "aws-jwt-verify"`) {
			modules = testkit.Package(t, "examples", "node_modules")
		}
		copyList(t, dir, "activities.json")
		return program{dir: dir, run: []string{node(t, dir, modules), path}}
	case ".py":
		python := testkit.Client(t, "venv/bin/python")
		if strings.Contains(source, "from guards import") {
			python = testkit.Package(t, "python", "venv/bin/python")
			copyList(t, dir, "activities.py")
		}
		return program{dir: dir, run: []string{python, path}}
	case ".sh":
		aws := testkit.Client(t, "venv/bin")
		return program{dir: dir, run: []string{"sh", "-eu", path}, env: []string{"PATH=" + aws + ":/usr/bin:/bin"}}
	}
	t.Fatalf("this test can't run %s", file)
	return program{}
}

// copyList gives an app the list of activities of this project.
func copyList(t testing.TB, dir, file string) {
	t.Helper()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, file), []byte(text(t, "activities", file)), 0o600))
}

// command returns a command that runs the program with Lambda at endpoint.
func (p program) command(t testing.TB, endpoint string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, p.run[0], append(p.run[1:len(p.run):len(p.run)], args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(append(cmd.Env, "AWS_ENDPOINT_URL_LAMBDA="+endpoint), p.env...)
	return cmd
}

// node returns the path of Node. Node looks for modules next to the program, so
// dir gets a link to them.
func node(t testing.TB, dir, modules string) string {
	t.Helper()
	testkit.OK(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	path, err := exec.LookPath("node")
	if err != nil {
		testkit.Skip(t, "Node is not installed")
	}
	return path
}

// compile builds a Go program and returns the path of its binary. The program is
// in a module of its own, example.com/app, which has this repository's list of
// activities. A workspace gives the module this repository and its dependencies.
// The flags are the same as lambdatest.Build's, so most packages are already in
// Go's cache.
func compile(t testing.TB, path string) string {
	t.Helper()
	checkout := testkit.Must(filepath.Abs(root))(t)
	dir, binary := filepath.Dir(path), strings.TrimSuffix(path, ".go")
	testkit.OK(t, os.CopyFS(filepath.Join(dir, "activities"), os.DirFS(filepath.Join(checkout, "activities"))))
	for _, args := range [][]string{
		{"mod", "init", "example.com/app"},
		{"work", "init", ".", checkout},
		slices.Concat([]string{"build", "-o", binary}, lambdatest.Flags, []string{path}),
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	return binary
}
