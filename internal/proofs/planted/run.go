package planted

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A Runner runs the project's tests on changed sources. It is not safe for concurrent use.
type Runner struct {
	Root  string            // of the project
	Long  bool              // proofs use their long bounds
	All   bool              // all tests of make test run, and not only until one fails
	Known map[string]string // by the name of a bug: the test that caught it before, as in [Outcome]. It runs first

	broken map[string][]string // by folder, see Broken
	passes map[string]bool     // by [Outcome.Test]: whether the test passes without a bug
	flags  map[string][]string // by folder, see quick
}

// An Outcome is what the tests show about a bug.
type Outcome struct {
	Test string   // the first test that failed, with its folder; empty: all tests passed
	All  []string // each test that failed, if the Runner runs all
	Took time.Duration
}

// timeout ends a test that never ends because of the mistake. A test that is
// stopped has failed.
const timeout, longTimeout = 4 * time.Minute, time.Hour

// Run runs the tests in the folders, in this order, until one fails: first those of make
// test, which take seconds, and then all. The sources have the mistake of b; with the zero
// Bug they are as they are. An error means that the tests show nothing, for example because
// the sources do not compile.
func (r *Runner) Run(ctx context.Context, b Bug, folders []string) (o Outcome, err error) {
	began := time.Now()
	defer func() { o.Took = time.Since(began) }()
	temp, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	overlay, err := b.Overlay(r.Root, temp)
	if err != nil {
		return o, err
	}
	if folder, test, _ := strings.Cut(r.Known[b.Name], " "); slices.Contains(folders, folder) && !r.All {
		if o.All, err = r.in(ctx, b, overlay, folder, test, testkit.AllParts); len(o.All) > 0 || err != nil {
			return o.first(), err
		}
	}
	parts := []string{"", testkit.AllParts}
	switch {
	case r.All:
		parts = parts[:1]
	case r.Long:
		parts = parts[1:]
	}
	for _, parts := range parts {
		for _, folder := range folders {
			failed, err := r.in(ctx, b, overlay, folder, "", parts)
			o.All = append(o.All, failed...)
			if err != nil || len(o.All) > 0 && !r.All {
				return o.first(), err
			}
		}
	}
	return o.first(), nil
}

// first returns o with its first test.
func (o Outcome) first() Outcome {
	if len(o.All) > 0 {
		o.Test = o.All[0]
	}
	return o
}

// Passes reports whether a test, as an [Outcome] names it, passes without a bug. A test that
// fails anyway catches nothing.
func (r *Runner) Passes(ctx context.Context, test string) (bool, error) {
	folder, name, _ := strings.Cut(test, " ")
	if passes, known := r.passes[test]; known {
		return passes, nil
	}
	failed, err := r.in(ctx, Bug{}, "", folder, name, testkit.AllParts)
	if err != nil {
		return false, err
	}
	if r.passes == nil {
		r.passes = make(map[string]bool)
	}
	r.passes[test] = len(failed) == 0
	return len(failed) == 0, nil
}

// Broken returns the tests in a folder that fail without a bug. They catch nothing.
func (r *Runner) Broken(ctx context.Context, folder string) ([]string, error) {
	if tests, known := r.broken[folder]; known {
		return tests, nil
	}
	tests, err := r.in(ctx, Bug{}, "", folder, "", "")
	if err != nil {
		return nil, err
	}
	if r.broken == nil {
		r.broken = make(map[string][]string)
	}
	r.broken[folder] = tests
	return tests, nil
}

// in runs the tests in one folder, or only the one with this name, with these parts of them (see
// testkit.Part). It returns the tests that failed, as in [Outcome].
func (r *Runner) in(ctx context.Context, b Bug, overlay, folder, only, parts string) (failed []string, err error) {
	c, ok := clients[folder]
	switch {
	case !ok:
		failed, err = r.test(ctx, b, overlay, folder, only, parts)
	case parts != "" || r.All: // they have no parts
		failed, err = c.test(ctx, r, b, folder, only)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	for i, test := range failed {
		failed[i] = folder + " " + test
	}
	return failed, nil
}

// test runs the tests in one folder, or only the one with this name. It returns the names of
// those that failed.
func (r *Runner) test(ctx context.Context, b Bug, overlay, folder, only, parts string) ([]string, error) {
	limit := timeout
	if r.Long {
		limit = longTimeout
	}
	args := []string{"test", "-vet=off", "-count=1", "-failfast=" + strconv.FormatBool(!r.All), "-timeout=" + limit.String(), "./" + folder}
	if top := topLevel.FindString(only); top != "" {
		args = append(args, "-run=^"+top+"$")
	}
	quick, err := r.quick(ctx, folder)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", append(args, quick...)...)
	cmd.Dir = r.Root
	cmd.Env = append(r.environment(b, overlay), "TESTS="+parts)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return failed(out.String(), err == nil)
}

// environment is this process's environment, with some differences. GOFLAGS has
// the overlay, so that the tests' own builds have the mistake too. PLANTED names
// the mistake, so that a proof does not save its figures. PROVE is set if a
// proof shall use its long bounds.
func (r *Runner) environment(b Bug, overlay string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PROVE=") && !strings.HasPrefix(v, "TESTS=") && !strings.HasPrefix(v, "PLANTED") {
			env = append(env, v)
		}
	}
	if r.Long {
		env = append(env, "PROVE=1")
	}
	if overlay != "" {
		env = append(env, "GOFLAGS=-overlay="+overlay)
	}
	return append(env, "PLANTED="+cmp.Or(b.Name, "none"))
}

// quick returns flags for the tests in a folder. Package rapid would look for up
// to 30 s for a smaller example of a failure, and write that example to testdata.
func (r *Runner) quick(ctx context.Context, folder string) ([]string, error) {
	if flags, known := r.flags[folder]; known {
		return flags, nil
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-test", "-deps", "./"+folder)
	cmd.Dir = r.Root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var flags []string
	if bytes.Contains(out, []byte("pgregory.net/rapid\n")) {
		flags = []string{"-rapid.shrinktime=0s", "-rapid.nofailfile"}
	}
	if r.flags == nil {
		r.flags = make(map[string][]string)
	}
	r.flags[folder] = flags
	return flags, nil
}

var (
	topLevel   = regexp.MustCompile(`^\w+`) // of the name of a test
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	stoppedAt  = regexp.MustCompile(`running tests:\n\s+(\S+)`)
)

// failed returns the tests that failed, by the output of go test.
func failed(out string, passed bool) (tests []string, err error) {
	switch {
	case passed && strings.Contains(out, "no test files"):
		return nil, errors.New("there are no tests")
	case passed:
		return nil, nil
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return nil, fmt.Errorf("the tests do not compile:\n%s", out)
	}
	for _, found := range failedTest.FindAllStringSubmatch(out, -1) {
		tests = append(tests, found[1])
	}
	if found := stoppedAt.FindStringSubmatch(out); found != nil {
		tests = append(tests, found[1]+" (never ends)")
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("go test fails, and no test did:\n%s", out)
	}
	return tests, nil
}

// Folder returns the folder of a proof: internal/proofs/NAME, or the name itself if it
// is a path.
func Folder(proof string) string {
	if strings.Contains(proof, "/") {
		return filepath.ToSlash(filepath.Clean(proof))
	}
	return "internal/proofs/" + proof
}
