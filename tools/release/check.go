package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// The packages that a release publishes in registries. To rename one, change it here and in its manifest. A test then
// finds each document and example with the old name.
const (
	Client       = "@cric-talk/guards"     // npm, from clients/typescript
	CDK          = "@cric-talk/guards-cdk" // npm, from deploy/cdk
	PythonClient = "cric-talk-guards"      // PyPI, from clients/python
)

// manifests are the files that have the name and the version of a package.
var manifests = []struct{ file, name string }{
	{"clients/typescript/package.json", Client},
	{"clients/typescript/package-lock.json", Client},
	{"deploy/cdk/package.json", CDK},
	{"deploy/cdk/package-lock.json", CDK},
	{"clients/python/pyproject.toml", PythonClient},
}

// Version returns the version of the packages in a checkout, such as 0.1.0. It is an error if they don't all have the same
// one, or if a name is not the one above.
func Version(source string) (string, error) {
	var version string
	var wrong []error
	for _, m := range manifests {
		content, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(m.file)))
		if err != nil {
			return "", err
		}
		name, v, err := manifest(m.file, content)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.file, err)
		}
		if version == "" {
			version = v
		}
		if name != m.name {
			wrong = append(wrong, fmt.Errorf("%s has the name %q, want %q", m.file, name, m.name))
		}
		if v != version {
			wrong = append(wrong, fmt.Errorf("%s has the version %q, but %s has %q", m.file, v, manifests[0].file, version))
		}
	}
	return version, errors.Join(wrong...)
}

// manifest returns the name and the version in a package.json, its lock file or a pyproject.toml.
func manifest(file string, content []byte) (name, version string, err error) {
	if filepath.Ext(file) == ".toml" {
		value := func(key string) string {
			if found := regexp.MustCompile(`(?m)^` + key + ` = "(.+)"$`).FindSubmatch(content); found != nil {
				return string(found[1])
			}
			return ""
		}
		return value("name"), value("version"), nil
	}
	var m struct {
		Name     string `json:"name"`
		Version  string `json:"version"`
		Packages map[string]struct {
			Version string `json:"version"`
		} `json:"packages"` // of a lock file: "" is the package itself
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return "", "", err
	}
	if p, ok := m.Packages[""]; ok && p.Version != m.Version {
		return "", "", fmt.Errorf("it has the versions %q and %q", m.Version, p.Version)
	}
	return m.Name, m.Version, nil
}

// unreleased is what documents say until the first release.
const unreleased = `(published|released|release) yet|after the first release|until (a version|the first version|the first one) is published`

// Check returns what has to change before this checkout can be released as a tag, such as v0.1.0.
func Check(ctx context.Context, source, tag string) error {
	version, err := Version(source)
	if err != nil {
		return err
	}
	var wrong []error
	if tag != "v"+version {
		wrong = append(wrong, fmt.Errorf("the tag is %q, but the packages have the version %q, so want the tag v%s", tag, version, version))
	}
	changes, err := os.ReadFile(filepath.Join(source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(version) + ` - \d{4}-\d\d-\d\d$`).Match(changes) {
		wrong = append(wrong, fmt.Errorf("CHANGELOG.md has no line such as %q", "## "+version+" - 2026-12-31"))
	}
	cmd := exec.CommandContext(ctx, "git", "grep", "--line-number", "-iE", unreleased, "--", "*.md", "*.txtar", ":!CONTRIBUTING.md")
	cmd.Dir = source
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: nothing found
		return fmt.Errorf("git grep: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		wrong = append(wrong, fmt.Errorf("a document says that there is no release: %s", strings.TrimSpace(line)))
	}
	return errors.Join(wrong...)
}
