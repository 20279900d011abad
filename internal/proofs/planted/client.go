package planted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A client is one that is not written in Go, so the go command can't plant in it.
type client struct {
	packages string         // what its tests need, which make checked installs: a folder of .cache/packages
	tests    string         // the command that runs its tests, in the shell
	one      string         // the command that runs the test $ONLY, whose name $PATTERN matches; it may run others, or none if there is no such test
	failed   *regexp.Regexp // finds a test that failed
}

var clients = map[string]client{
	"clients/typescript": {
		"typescript/source/node_modules", "npm test --silent",
		`npm run --silent build && npx tsc -p test && node --test --test-force-exit --test-name-pattern="$PATTERN" dist-test/*.test.js`,
		regexp.MustCompile(`(?m)^\s*not ok \d+ - (.+)$|^\s*✖ (.+?) \(`),
	},
	"clients/python": {
		"python-tools", "PYTHONPATH=src python -m pytest -q -x -n 4", `PYTHONPATH=src python -m pytest -q -x "${ONLY%%::*}" || test $? = 4`,
		regexp.MustCompile(`(?m)^FAILED (\S+)`),
	},
}

// test runs the tests of a client, or only the one with this name, in a copy of its folder, which has
// the mistake of b. It returns the names of those that failed.
func (c client) test(ctx context.Context, r *Runner, b Bug, folder, only string) (failed []string, err error) {
	temp, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := c.plant(r.Root, folder, temp, b); err != nil {
		return nil, err
	}
	tests := c.tests
	switch {
	case r.All:
		tests = strings.Replace(tests, " -x", "", 1)
	case only != "":
		tests = c.one
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", tests)
	cmd.Dir = temp
	cmd.Env = append(os.Environ(), "ONLY="+only, "PATTERN="+regexp.QuoteMeta(only), "PATH="+filepath.Join(r.Root, ".cache/packages", c.packages, "bin")+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err = cmd.Run(); err == nil {
		return nil, nil
	}
	for _, found := range c.failed.FindAllStringSubmatch(out.String(), -1) {
		failed = append(failed, strings.Join(found[1:], ""))
	}
	switch {
	case ctx.Err() != nil:
		failed = append(failed, "(never ends)")
	case len(failed) == 0:
		return nil, fmt.Errorf("%s fails, and no test did:\n%s", c.tests, &out)
	}
	return failed, nil
}

// plant copies the client to temp, with the mistake and a link to installed
// packages.
func (c client) plant(root, folder, temp string, b Bug) error {
	source := filepath.Join(root, folder)
	err := filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), "dist") || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		part, err := filepath.Rel(source, name)
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(temp, part), 0o700))
		}
		content, err := os.ReadFile(name)
		return errors.Join(err, os.WriteFile(filepath.Join(temp, part), content, 0o600))
	})
	if err != nil {
		return err
	}
	changed, err := b.Apply(root)
	if err != nil {
		return err
	}
	for name, content := range changed {
		if part, ok := strings.CutPrefix(name, folder+"/"); ok {
			err = errors.Join(err, os.WriteFile(filepath.Join(temp, part), []byte(content), 0o600))
		}
	}
	if filepath.Base(c.packages) == "node_modules" {
		err = errors.Join(err, os.Symlink(filepath.Join(root, ".cache/packages", c.packages), filepath.Join(temp, "node_modules")))
	}
	return err
}
