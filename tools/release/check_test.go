package release_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/tools/release"
)

func TestAllPackagesHaveOneVersion(t *testing.T) {
	version := testkit.Must(release.Version("../.."))(t)
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
		t.Errorf("the packages have the version %q, want one such as 0.1.0", version)
	}
}

func TestDocumentsAndExamplesUseTheNamesOfThePackages(t *testing.T) {
	archive := strings.NewReplacer("@", "", "/", "-") // npm pack makes cric-talk-guards-cdk-0.1.0.tgz
	names := []string{release.Client, release.CDK, release.PythonClient, archive.Replace(release.Client), archive.Replace(release.CDK)}
	// A name of today, or one that looks like a former or a wrong one.
	named := regexp.MustCompile(release.CDK + "|" + release.Client + "|" + release.PythonClient + `|@[\w-]+/guards(-[a-z]+)*|\bcric-talk-guards(-cdk)?`)
	found := 0
	for file, content := range testkit.Files(t) {
		for _, name := range named.FindAllString(string(content), -1) {
			found++
			if !slices.Contains(names, name) {
				t.Errorf("%s names the package %s, want one of %q", file, name, names)
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d names of packages, want at least 50", found)
	}
}

func TestATagNeedsItsVersionAndItsChanges(t *testing.T) {
	const changes = "# Changelog\n\n## 0.2.0 - 2026-12-31\n"
	for name, tt := range map[string]struct {
		tag, changes, python, document string
		want                           string // "" is no error
	}{
		"all agree":                    {"v0.2.0", changes, "0.2.0", "", ""},
		"another tag":                  {"v0.3.0", changes, "0.2.0", "", `the tag is "v0.3.0", but the packages have the version "0.2.0"`},
		"a tag without v":              {"0.2.0", changes, "0.2.0", "", "want the tag v0.2.0"},
		"another package":              {"v0.2.0", changes, "0.1.9", "", `clients/python/pyproject.toml has the version "0.1.9"`},
		"no date":                      {"v0.2.0", "## 0.2.0\n\nSoon.\n", "0.2.0", "", "CHANGELOG.md has no line"},
		"a document without a release": {"v0.2.0", changes, "0.2.0", "No version is published yet.", "README.md:1:No version is published yet."},
	} {
		t.Run(name, func(t *testing.T) {
			source := t.TempDir()
			files := fstest.MapFS{
				"clients/python/pyproject.toml": {Data: []byte("[project]\nname = \"" + release.PythonClient + "\"\nversion = \"" + tt.python + "\"\n")},
				"CHANGELOG.md":                  {Data: []byte(tt.changes)}, "README.md": {Data: []byte(tt.document)},
			}
			for folder, name := range map[string]string{"clients/typescript": release.Client, "deploy/cdk": release.CDK} {
				files[folder+"/package.json"] = &fstest.MapFile{Data: []byte(`{"name": "` + name + `", "version": "0.2.0"}`)}
				files[folder+"/package-lock.json"] = &fstest.MapFile{Data: []byte(`{"name": "` + name + `", "version": "0.2.0", "packages": {"": {"version": "0.2.0"}}}`)}
			}
			testkit.OK(t, os.CopyFS(source, files))
			run(t, source, "git", "init", "--quiet")
			run(t, source, "git", "add", ".")
			err := release.Check(t.Context(), source, tt.tag)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
