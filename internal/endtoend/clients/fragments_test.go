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

// A fragment needs an app around it, so no test runs it. Its syntax must be right,
// and what it imports from the clients must exist. Other tests run the rest: the
// fragments in sh (internal/workbench/command), and the events of docs/recipes.md and
// docs/sign-in.md (internal/workbench/scaffold). TestSamplesInCallingDoWhatTheDocumentPromises
// runs the samples of docs/calling.md.
func TestFragmentsInDocumentsAreRight(t *testing.T) {
	testkit.Clients.Need(t)
	checked := map[string]int{}
	for _, name := range []string{"calling.md", "recipes.md", "sign-in.md", "strangers.md", "testing.md"} {
		document, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range block.FindAllStringSubmatch(string(document), -1) {
			language, fragment := found[1], found[2]
			if sample.MatchString("\n```" + language + "\n" + fragment + "\n```\n") {
				continue
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
			}
		}
	}
	if checked["go"] == 0 || checked["js"] == 0 || checked["json"] == 0 || checked["python"] < 7 {
		t.Errorf("the fragments checked are %v, want each language", checked)
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
