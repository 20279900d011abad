package rules_test

import (
	"fmt"
	"path"
	"regexp"
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
	testkit.OK(t, yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &config))
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
	testkit.Same(t, "folders in dependabot.yml", slices.Compact(want), listed)
}

// A workflow is what the tests below read of one.
type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Concurrency any               `yaml:"concurrency"`
	Jobs        map[string]job    `yaml:"jobs"`
}

type job struct {
	Needs       any               `yaml:"needs"` // a name or several
	Uses        string            `yaml:"uses"`
	Permissions map[string]string `yaml:"permissions"`
	Timeout     int               `yaml:"timeout-minutes"`
	Steps       []struct {
		Uses string `yaml:"uses"`
		Run  string `yaml:"run"`
	} `yaml:"steps"`
}

// pinned is an action with the commit of a version: a tag can move.
var pinned = regexp.MustCompile(`^([\w-]+/[\w/-]+@[0-9a-f]{40})?$`)

func readWorkflow(t *testing.T, name string) (w workflow) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, name)), &w); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for id, job := range w.Jobs {
		if job.Uses == "" && (job.Timeout < 1 || job.Timeout > 60) {
			t.Errorf("%s: job %s has a timeout of %d minutes, want 1 to 60", name, id, job.Timeout)
		}
		for _, step := range job.Steps {
			if !pinned.MatchString(step.Uses) {
				t.Errorf("%s: job %s uses %s, want it pinned to a commit", name, id, step.Uses)
			}
		}
	}
	return w
}

func TestHostedWorkflowRunsTheChecksAndMayOnlyRead(t *testing.T) {
	const name = ".github/workflows/ci.yml"
	w := readWorkflow(t, name)
	if p := w.Permissions; len(p) != 1 || p["contents"] != "read" || w.Concurrency == nil {
		t.Errorf("%s has the permissions %v and the concurrency group %v, want contents: read only, and a group", name, p, w.Concurrency)
	}
	runs := 0
	for id, job := range w.Jobs {
		if job.Permissions != nil {
			t.Errorf("job %s has the permissions %v, want none of its own", id, job.Permissions)
		}
		for _, step := range job.Steps {
			if step.Run == ".ci/run" {
				runs++
			}
		}
	}
	if runs != 1 {
		t.Errorf("%s runs .ci/run %d times, want once", name, runs)
	}
}

// Each job of a release has only the permissions that are listed here. A job that may write comes after the tests.
func TestAReleaseIsPublishedOnlyAfterTheTests(t *testing.T) {
	w := readWorkflow(t, ".github/workflows/release.yml")
	reads := map[string]string{"contents": "read"}
	want := map[string]map[string]string{
		"tag": reads, "test": reads, "build": reads,
		"files":  {"contents": "write", "id-token": "write", "attestations": "write"},
		"npm":    {"id-token": "write"},
		"pypi":   {"id-token": "write"},
		"public": {"contents": "write"},
	}
	got := map[string]map[string]string{}
	for id, job := range w.Jobs {
		got[id] = job.Permissions
	}
	if diff := cmp.Diff(want, got); diff != "" || w.Permissions == nil || len(w.Permissions) > 0 {
		t.Errorf("all jobs have the permissions %v, want {}, and each has (-want +got):\n%s", w.Permissions, diff)
	}
	if uses := w.Jobs["test"].Uses; uses != "./.github/workflows/ci.yml" {
		t.Errorf("the job test uses %q, want the workflow of each pull request", uses)
	}
	var after func(id, other string) bool
	after = func(id, other string) bool {
		needs, several := w.Jobs[id].Needs.([]any)
		if one := w.Jobs[id].Needs; !several && one != nil {
			needs = []any{one}
		}
		return slices.ContainsFunc(needs, func(need any) bool { return need == other || after(fmt.Sprint(need), other) })
	}
	for _, order := range [][2]string{{"test", "tag"}, {"build", "test"}, {"files", "build"}, {"npm", "files"}, {"pypi", "files"}, {"public", "npm"}, {"public", "pypi"}} {
		if !after(order[0], order[1]) {
			t.Errorf("the job %s does not wait for %s", order[0], order[1])
		}
	}
}
