package rules_test

import (
	"path"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/testkit"
)

// ecosystems has dependabot's name for each kind of file that names dependencies.
var ecosystems = map[string]string{"go.mod": "gomod", "package.json": "npm", "requirements.txt": "pip", "requirements-dev.txt": "pip", "examples.txt": "pip", "pom.xml": "maven"}

// Each folder that names dependencies is in dependabot.yml, and each folder in it names some.
func TestDependabotReadsEachListOfDependencies(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directory   string   `yaml:"directory"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	if err := yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	listed, want := []string{}, []string{"github-actions /"}
	for _, update := range config.Updates {
		for _, folder := range append(update.Directories, update.Directory) {
			if folder != "" {
				listed = append(listed, update.Ecosystem+" "+folder)
			}
		}
	}
	for name := range testkit.Files(t) {
		if ecosystem := ecosystems[path.Base(name)]; ecosystem != "" {
			want = append(want, ecosystem+" "+path.Join("/", path.Dir(name)))
		}
	}
	slices.Sort(listed)
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), listed); diff != "" {
		t.Errorf("folders (-repository +dependabot.yml):\n%s", diff)
	}
}
