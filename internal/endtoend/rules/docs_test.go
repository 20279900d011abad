package rules_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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

// These pages have key figures and conclusions. All other figures are in the files beside them.
func TestThePagesOfFiguresStayShort(t *testing.T) {
	const most = 1500
	for _, name := range []string{"docs/reliability.md", "docs/performance.md"} {
		if words := len(strings.Fields(read(t, name))); words > most {
			t.Errorf("%s has %d words, want at most %d", name, words, most)
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
