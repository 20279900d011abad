package projects_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// A workflow is what this test knows of GitHub's workflows.
type workflow struct {
	Jobs map[string]struct {
		Steps []step
	}
}

type step struct {
	Uses string
	With map[string]any
	Run  string
	Dir  string `yaml:"working-directory"`
}

// The first push of a new project runs its workflow on a machine that has only what the workflow checks out.
func TestTheWorkflowOfANewProjectPasses(t *testing.T) {
	testkit.Projects.Need(t)
	t.Parallel()
	p := newProject(t)
	p.wants(t, 0, "", "git init --quiet . && git add . && git -c user.name=me -c user.email=me@example.com commit --quiet -m 'First push'")
	machine := project{filepath.Join(t.TempDir(), "a", "b", "c", "d", "e", "f", "g")} // so deep that go.mod's ../.. does not find Guards
	testkit.OK(t, os.MkdirAll(machine.dir, 0o700))
	for _, s := range steps(t, p.read(t, ".github/workflows/ci.yml")) {
		at := func(input string) string {
			path, _ := s.With[input].(string)
			return filepath.Join(machine.dir, path)
		}
		switch {
		case s.Uses == "actions/checkout@v5" && s.With["repository"] == nil:
			machine.wants(t, 0, "", "git clone --quiet "+p.dir+" "+at("path"))
		case s.Uses == "actions/checkout@v5" && s.With["repository"] == "cric-talk/guards":
			testkit.OK(t, os.Rename(testkit.Copy(t), at("path")))
		case s.Uses == "actions/setup-go@v6":
			for _, input := range []string{"go-version-file", "cache-dependency-path"} {
				if info, err := os.Stat(at(input)); err != nil || info.IsDir() {
					t.Errorf("%s: %s, want a file: %v", input, s.With[input], err)
				}
			}
		case s.Run != "":
			project{filepath.Join(machine.dir, s.Dir)}.wants(t, 0, "", s.Run)
		default:
			t.Errorf("this test can't run the step %+v", s)
		}
	}
}

// Once Guards has versions, go.mod names one, and a project's workflow needs nothing else.
func TestTheWorkflowOfAPublishedVersionChecksOutTheProject(t *testing.T) {
	_, changes, err := scaffold.Init("my-guards", scaffold.Request{
		Guard: "photos-guard", Activity: guards.Activity{Name: "upload_photo", Limit: "5/1m"},
	}, scaffold.Origin{Version: "v0.1.0"})
	testkit.OK(t, err)
	i := slices.IndexFunc(changes, func(c scaffold.Change) bool { return c.File == ".github/workflows/ci.yml" })
	for _, s := range steps(t, changes[i].After) {
		if s.With["repository"] != nil || s.With["path"] != nil || s.Dir != "" || strings.HasPrefix(s.Run, "go mod edit") {
			t.Errorf("the step %+v is for a version that is not published", s)
		}
	}
}

// steps returns the steps of a workflow's only job. One of them runs make test.
func steps(t *testing.T, text string) []step {
	t.Helper()
	var w workflow
	testkit.OK(t, yaml.Unmarshal([]byte(text), &w))
	all := w.Jobs["test"].Steps
	if len(w.Jobs) != 1 || all[len(all)-1].Run != "make test" {
		t.Fatalf("the workflow has the jobs %+v, want one that ends with make test", w.Jobs)
	}
	return all
}
