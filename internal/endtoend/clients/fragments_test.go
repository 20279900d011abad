package clients_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

var (
	block      = regexp.MustCompile("(?s)\n```([a-z]+)\n(.*?)\n```")
	fromPython = regexp.MustCompile(`from guards[.\w]* import [\w, ]+`)
	fromNode   = regexp.MustCompile(`import \{ (\w+) \} from ("@cric-talk/[^"]+")`)
)

// The apps of docs/recipes.md are fragments, too. Their events are tested in
// internal/workbench/scaffold.
func TestFragmentsInRecipesAreRight(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root, "docs", "recipes.md"))
	if err != nil {
		t.Fatal(err)
	}
	fragments := 0
	for _, found := range block.FindAllStringSubmatch(string(document), -1) {
		if found[1] == "python" {
			checkPython(t, found[2])
			fragments++
		}
	}
	if fragments < 6 {
		t.Errorf("docs/recipes.md has %d fragments of Python, want one in each recipe", fragments)
	}
}

// A fragment of docs/calling.md needs an app around it, so no test runs it. Its
// syntax must be right, and what it imports from the clients must exist.
func TestFragmentsInCallingAreRight(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root, "docs", "calling.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for _, found := range block.FindAllStringSubmatch(string(document), -1) {
		language, fragment := found[1], found[2]
		if sample.MatchString("\n```" + language + "\n" + fragment + "\n```\n") {
			continue // TestSamplesInCallingDoWhatTheDocumentPromises runs it
		}
		checked[language]++
		switch language {
		case "go":
			source := "package app\nfunc _() {\n" + fragment + "\n}\n"
			if _, err := parser.ParseFile(token.NewFileSet(), "fragment.go", source, parser.SkipObjectResolution); err != nil {
				t.Errorf("%v in:\n%s", err, fragment)
			}
		case "js":
			checkNode(t, fragment)
		case "python":
			checkPython(t, fragment)
		case "json":
			if !json.Valid([]byte(fragment)) {
				t.Errorf("this is not JSON:\n%s", fragment)
			}
		case "sh": // the tests of internal/workbench/command run it
		default:
			t.Errorf("no test checks a fragment in the language %q", language)
		}
	}
	for _, language := range []string{"go", "js", "python", "json", "sh"} {
		if checked[language] == 0 {
			t.Errorf("docs/calling.md has no fragment in the language %q", language)
		}
	}
}

// checkNode lets Node parse a fragment of JavaScript and import what it imports.
func checkNode(t *testing.T, fragment string) {
	t.Helper()
	var imports strings.Builder
	for _, found := range fromNode.FindAllStringSubmatch(fragment, -1) {
		imports.WriteString("if (!(await import(" + found[2] + "))." + found[1] + ") throw new Error(" + found[2] + ");\n")
	}
	app := program{dir: t.TempDir()}
	path := filepath.Join(app.dir, "imports.mjs")
	if err := os.WriteFile(path, []byte(imports.String()+"async function unused() {\n"+
		regexp.MustCompile(`(?m)^import .*$`).ReplaceAllString(fragment, "")+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	app.run = []string{node(t, app.dir, testkit.Package(t, "examples", "node_modules")), path}
	if ended := finish(t, app.command(t, "")); ended.status != 0 {
		t.Errorf("%s in:\n%s", ended.stderr, fragment)
	}
}

// checkPython lets Python parse a fragment and import what it imports. Flask is
// not installed; the Python client's own tests have it.
func checkPython(t *testing.T, fragment string) {
	t.Helper()
	var script strings.Builder
	script.WriteString("import ast, sys\nast.parse(sys.stdin.read())\n")
	for _, found := range fromPython.FindAllString(fragment, -1) {
		if !strings.HasPrefix(found, "from guards.flask ") {
			script.WriteString(found + "\n")
		}
	}
	app := program{dir: t.TempDir(), run: []string{testkit.Package(t, "examples", "venv/bin/python"), "-c", script.String()}}
	cmd := app.command(t, "")
	cmd.Stdin = strings.NewReader(fragment)
	if ended := finish(t, cmd); ended.status != 0 {
		t.Errorf("%s in:\n%s", ended.stderr, fragment)
	}
}
