package projects_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// The commands of README.md and docs/projects.md work in their order. A document has a project in JSON, one in Go or both.
func TestTheStepsOfTheDocumentsWork(t *testing.T) {
	testkit.Projects.Need(t)
	for document, least := range map[string]int{"README.md": 8, "docs/projects.md": 12} {
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Parallel()
			s := walk{here: ours(t), inGo: project{filepath.Join(t.TempDir(), "my-guards")}, inJSON: project{filepath.Join(t.TempDir(), "my-guards")}, bin: t.TempDir()}
			s.here.wants(t, 0, "^$", s.install())
			ran := 0
			for _, block := range regexp.MustCompile("(?s)\n *```sh\n(.*?)\n *```").FindAllStringSubmatch(s.here.read(t, document), -1) {
				for line := range strings.Lines(block[1]) {
					s.run(t, strings.TrimSpace(line))
					ran++
				}
			}
			if ran < least {
				t.Errorf("%s has %d commands, want more", document, ran)
			}
		})
	}
}

// A walk runs the commands of a document in this repository, and in the projects that they make.
type walk struct {
	here, inGo, inJSON project
	bin                string // has the installed program guards
}

// install is the command that installs guards into bin, where the commands find it.
func (s walk) install() string { return "GOBIN=" + s.bin + " go install ./cmd/guards" }

// run runs one command where the reader is.
func (s walk) run(t *testing.T, line string) {
	t.Helper()
	installed := "PATH=" + s.bin + ":$PATH && " + line
	switch {
	case line == "go install ./cmd/guards":
		s.here.wants(t, 0, "^$", s.install())
	case strings.HasPrefix(line, "guards check create_post "):
		s.here.wants(t, 1, `3 +refused +10/10 used`, installed)
	case strings.HasPrefix(line, "guards init "):
		s.here.wants(t, 0, "next: cd ", strings.Replace(installed, "../my-guards", s.inJSON.dir, 1))
	case strings.HasPrefix(line, "guards check "):
		s.inJSON.wants(t, 1, `6 +refused +5/5 used`, installed)
	case strings.HasPrefix(line, "go run ./cmd/guards init "):
		s.here.wants(t, 0, "next: cd ", strings.Replace(line, "../my-guards", s.inGo.dir, 1))
	case strings.HasPrefix(line, "go run ./cmd/guards check "):
		s.inGo.wants(t, 1, `6 +refused +5/5 used`, line)
	case strings.HasPrefix(line, "go run ./cmd/guards new "), line == "make generate":
		s.inGo.wants(t, 0, "", line)
	case strings.HasPrefix(line, "make test") && s.inGo.exists():
		s.inGo.wants(t, 0, `ok\s+my-guards/limits`, line)
	case strings.HasPrefix(line, "cd "), line == "go mod tidy":
	case strings.HasPrefix(line, "git clone "), strings.HasPrefix(line, "go get "): // these need the network
	case line == "make deploy-local", line == "make test": // make tour runs the first, and the second runs this test
	case line == "guards serve", strings.HasPrefix(line, "curl "): // TestSnippetsOfTheDocumentsWork starts the first, and runs the second
	case line == "make deploy": // it needs AWS
	default:
		t.Errorf("this test does not know how to run the command %s", line)
	}
}
