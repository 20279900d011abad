package clients_test

import (
	"crypto/rand"
	"encoding/json"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// What the README's snippets leave to the reader, before and after them.
const (
	someList = `
import { readFile } from "node:fs/promises";
const activities = JSON.parse(await readFile(new URL("activities.json", import.meta.url), "utf8"));
`
	someExpress = someList + `
import express from "express";
const app = express();
app.use((request, _, next) => {
  request.user = { id: request.get("Authorization")?.replace("Bearer ", "") };
  next();
});
const createPost = (_, response) => response.status(201).send("created");
const server = app.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));
`
	someLambda = someList + `
const userOf = ({ requestContext: { authorizer } }) => authorizer.claims?.sub ?? authorizer.jwt?.claims.sub ?? authorizer.iam.userId;
const createPost = () => ({ statusCode: 201, body: "created" });
`
)

// The README names the framework of each snippet of JavaScript. In that framework, it refuses the eleventh post.
func TestTheSnippetsOfTheReadmeRefuse(t *testing.T) {
	testkit.Clients.Need(t)
	readme := text(t, "README.md")
	endpoint := serve(t)
	ran := 0
	for _, found := range regexp.MustCompile("(?s)\n```js\n// (.*?)\n(.*?)\n```").FindAllStringSubmatch(readme, -1) {
		framework, snippet := found[1], found[2]
		switch {
		case framework == "Express":
			inExpress(t, endpoint, someExpress+snippet)
		case strings.HasPrefix(framework, "Lambda, behind API Gateway (REST or HTTP API) or a Function URL"):
			call := handlers(t, endpoint, "readme.mjs", someLambda+snippet)
			for _, on := range []platform{restAPI, httpAPI, functionURL} {
				refusesAsHTTP(t, endpoint, on, call)
			}
		default:
			t.Errorf("README.md has a snippet for %s, and this test does not know how to run it", framework)
		}
		ran++
	}
	if all := strings.Count(readme, "\n```js\n"); ran != 2 || all != ran {
		t.Errorf("%d of %d snippets ran, want 2", ran, all)
	}
}

// inExpress runs an app with Express, and posts to it.
func inExpress(t *testing.T, endpoint, source string) {
	t.Helper()
	program := install(t, "readme.mjs", source)
	running, url := app(func(t testing.TB, env ...string) *process {
		t.Helper()
		return run(t, env, program.run[0], program.run[1])
	}).serving(t, "AWS_ENDPOINT_URL_LAMBDA="+endpoint)
	running.retry(t, func(t testing.TB, user string) {
		t.Helper()
		counts(t, post(t, url, user), http.StatusCreated, 1)
		full := rand.Text()
		askPosts(t, endpoint, full, `,"count":10`)
		refuses(t, post(t, url, full))
	})
}

// The tests of the clients run each form of a refusal that their READMEs list. docs/calling.md lists the same.
func TestTheDocumentListsTheFormsOfTheClients(t *testing.T) {
	_, table, _ := strings.Cut(text(t, "docs", "calling.md"), "\n## Tell the user\n")
	table, _, _ = strings.Cut(table, "\n\nWith the form of another framework")
	typescript, python := text(t, "clients", "typescript", "README.md"), text(t, "clients", "python", "README.md")
	forms := regexp.MustCompile("`return [^`]+`").FindAllString(table, -1)
	if len(forms) < 5 {
		t.Errorf("docs/calling.md has the forms %q, want at least 5", forms)
	}
	for _, form := range forms {
		if readme := map[bool]string{true: typescript, false: python}[strings.HasSuffix(form, ";`")]; !strings.Contains(readme, "| "+form+" |") {
			t.Errorf("docs/calling.md has the form %s, and the README of the client does not", form)
		}
	}
}

// text returns the content of a file of this repository.
func text(t testing.TB, name ...string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile(filepath.Join(append([]string{root}, name...)...)))(t))
}

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
		for _, found := range block.FindAllStringSubmatch(text(t, "docs", name), -1) {
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
	testkit.OK(t, os.WriteFile(path, []byte(imports.String()+"async function unused() {\n"+
		regexp.MustCompile(`(?m)^import .*$`).ReplaceAllString(fragment, "")+"\n}\n"), 0o600))
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
