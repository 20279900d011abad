package clients_test

import (
	"crypto/rand"
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
func text(t *testing.T, name ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, name...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
