package rules_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestRelativeLinksInDocumentsWork(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s#]+)[^)]*\)`)
	code := regexp.MustCompile("(?s)\n```.*?\n```") // such as errors.AsType[T](err)
	for name, content := range testkit.Files(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, found := range link.FindAllSubmatch(code.ReplaceAll(content, nil), -1) {
			target := string(found[1])
			if strings.Contains(target, ":") { // https: or mailto:
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), target)); err != nil {
				t.Errorf("%s links to %s: %v", name, target, err)
			}
		}
	}
}

// docs/calling.md sends readers to these READMEs for all options. client has a
// test of its own.
func TestTheReadmesOfTheClientsListEachOption(t *testing.T) {
	typescript, python := regexp.MustCompile(`(?m)^  (\w+)\??: `), regexp.MustCompile(`(?m)^        (\w+): `)
	keyword := regexp.MustCompile(`(?m)^    (\w+): `)
	for _, tt := range []struct {
		language, source, begins, ends string // where the options are
		option                         *regexp.Regexp
		least                          int
	}{
		{"typescript", "src/options.ts", "export interface Options<A extends Activities = Activities> {", "\n}", typescript, 9},
		{"typescript", "src/middleware.ts", "interface", "\n}", typescript, 6},
		{"python", "src/guards/_base.py", "def __init__(", ") -> None:", python, 8},
		{"python", "src/guards/asgi.py", "def __init__(", ") -> None:", python, 4},
		{"python", "src/guards/flask.py", "def limit(", ") -> ", keyword, 4},
		{"python", "src/guards/fastapi.py", "def limit(", ") -> ", keyword, 3},
	} {
		folder := "clients/" + tt.language + "/"
		_, options, _ := strings.Cut(read(t, folder+tt.source), tt.begins)
		options, _, _ = strings.Cut(options, tt.ends)
		readme := read(t, folder+"README.md")
		found := tt.option.FindAllStringSubmatch(options, -1)
		for _, option := range found {
			if named := regexp.MustCompile("`" + option[1] + "[`(]|\\b" + option[1] + "[=,]"); !named.MatchString(readme) {
				t.Errorf("%sREADME.md does not name %s of %s", folder, option[1], tt.source)
			}
		}
		if len(found) < tt.least {
			t.Errorf("%s%s has the options %q, want at least %d", folder, tt.source, found, tt.least)
		}
	}
}

func TestHostedWorkflowRunsTheChecksAndMayOnlyRead(t *testing.T) {
	const name = ".github/workflows/ci.yml"
	var workflow struct {
		Permissions map[string]string `yaml:"permissions"`
		Concurrency any               `yaml:"concurrency"`
		Jobs        map[string]struct {
			Permissions map[string]string `yaml:"permissions"`
			Timeout     int               `yaml:"timeout-minutes"`
			Steps       []struct {
				Uses string `yaml:"uses"`
				Run  string `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, name)), &workflow); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if p := workflow.Permissions; len(p) != 1 || p["contents"] != "read" || workflow.Concurrency == nil {
		t.Errorf("%s has the permissions %v and the concurrency group %v, want contents: read only, and a group", name, p, workflow.Concurrency)
	}
	pinned := regexp.MustCompile(`^([\w-]+/[\w/-]+@v\d+)?$`)
	runs := 0
	for id, job := range workflow.Jobs {
		if job.Permissions != nil || job.Timeout < 1 || job.Timeout > 60 {
			t.Errorf("job %s has the permissions %v and a timeout of %d minutes, want none of its own and 1 to 60", id, job.Permissions, job.Timeout)
		}
		for _, step := range job.Steps {
			if !pinned.MatchString(step.Uses) {
				t.Errorf("job %s uses %s, want it pinned to a major version such as @v5", id, step.Uses)
			}
			if step.Run == ".ci/run" {
				runs++
			}
		}
	}
	if runs != 1 {
		t.Errorf("%s runs .ci/run %d times, want once", name, runs)
	}
}
