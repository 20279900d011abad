package scenarios_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

const root = "../../.."

// app makes an app of a program in its language, which is "go", "mjs" or "py". The app
// has the client as a user installs it, this repository's list of activities, and nothing
// else. It returns the command that runs the app.
func app(t testing.TB, language string, source []byte) (command []string) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "program."+language, source)
	list := func(language string) []byte {
		return fileOf(t, filepath.Join(root, "activities", "activities."+language))
	}
	switch language {
	case "mjs": // Node looks for modules next to the program
		testkit.OK(t, os.Symlink(testkit.Package(t, "typescript", "node_modules"), filepath.Join(dir, "node_modules")))
		writeFile(t, dir, "activities.js", append([]byte("export const activities = "), list("json")...))
		writeFile(t, dir, "package.json", []byte(`{"type": "module"}`))
		node, err := exec.LookPath("node")
		if err != nil {
			testkit.Skip(t, "Node is not installed")
		}
		return []string{node, filepath.Join(dir, "program.mjs")}
	case "py":
		writeFile(t, dir, "activities.py", list("py"))
		return []string{testkit.Package(t, "python", filepath.Join("venv", "bin", "python")), filepath.Join(dir, "program.py")}
	}
	_, requires, _ := strings.Cut(string(fileOf(t, filepath.Join(root, "go.mod"))), "\n")
	build(t, dir, "module example.com/app\n"+requires+"\nrequire github.com/cric-talk/guards v0.0.0\n", "go mod edit -replace=github.com/cric-talk/guards=CHECKOUT")
	return []string{filepath.Join(dir, "program")}
}

// build builds the Go program in a folder. Its module gets the list of activities, and is
// then prepared by a command. CHECKOUT in the command is this repository.
func build(t testing.TB, dir, module, prepare string) {
	t.Helper()
	here := testkit.Must(filepath.Abs(root))(t)
	testkit.OK(t, os.CopyFS(filepath.Join(dir, "activities"), os.DirFS(filepath.Join(here, "activities"))))
	writeFile(t, dir, "go.mod", []byte(module))
	writeFile(t, dir, "go.sum", fileOf(t, filepath.Join(root, "go.sum")))
	run := exec.Command("sh", "-ec", strings.ReplaceAll(prepare, "CHECKOUT", here)+" && go build -mod=mod -o program .")
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// output runs an app that reaches Lambda at endpoint, and returns what it prints.
func output(t testing.TB, endpoint string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	for name, value := range environment(t, endpoint) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, &failed)
	}
	return string(out)
}

// The first example of each README runs as it stands.
func TestTheReadmesExampleRuns(t *testing.T) {
	testkit.Clients.Need(t)
	cloud := deploy(t)
	cloud.functions["posts-guard"].Ready(t)
	for language, tt := range map[string]struct{ folder, fence, prints string }{ // prints begins what the example prints
		"go":  {"client", "go", "true 9 <nil>"},
		"mjs": {"clients/typescript", "js", "{\n  allowed: true,\n  reason: 'ok',"},
		"py":  {"clients/python", "python", "Decision(allowed=True, reason='ok'"},
	} {
		t.Run(language, func(t *testing.T) {
			readme := fileOf(t, filepath.Join(root, tt.folder, "README.md"))
			example := regexp.MustCompile("(?s)```" + tt.fence + "\n(.*?)```").FindSubmatch(readme)
			if example == nil {
				t.Fatal("the README has no example")
			}
			testkit.Retry(t, func(t testing.TB) { // the example has the client's own timeouts
				user := rand.Text()
				source := bytes.ReplaceAll(example[1], []byte(`"u1"`), []byte(`"`+user+`"`))
				if out := output(t, cloud.url, app(t, language, source)...); !strings.HasPrefix(out, tt.prints) {
					t.Errorf("printed %s, want %s", out, tt.prints)
				}
				if counted := cloud.counted(t, user); counted != 1 {
					t.Errorf("%d actions are counted, want 1", counted)
				}
			})
		})
	}
}

// docs/calling.md has a command for each language. The commands of npm and pip
// name the file that make packages built from the client. Go's command runs.
func TestTheCommandsThatInstallAClient(t *testing.T) {
	testkit.Clients.Need(t)
	document := string(fileOf(t, filepath.Join(root, "docs", "calling.md")))
	for language, pattern := range map[string]string{
		"typescript": "npm install CHECKOUT/.cache/packages/typescript/*.tgz", "python": "pip install CHECKOUT/.cache/packages/python/*.whl",
	} {
		built, err := filepath.Glob(testkit.Package(t, language, filepath.Base(pattern)))
		if !strings.Contains(document, "| `"+pattern+"` |") || len(built) != 1 {
			t.Errorf("%s: %q, %v, want one file, and a row with its pattern", pattern, built, err)
		}
	}
	install := regexp.MustCompile("\n\\| Go \\| `(go mod edit [^`]+)` \\|\n").FindStringSubmatch(document)
	program := regexp.MustCompile("(?s)```go\n(// post\\.go\n.*?)```").FindStringSubmatch(document)
	if install == nil || program == nil {
		t.Fatal("docs/calling.md has no command for Go, or no post.go")
	}
	dir := t.TempDir()
	writeFile(t, dir, "post.go", []byte(program[1]))
	build(t, dir, "module example.com/app\n", install[1])
}

// Their own checks (publint, mypy) check their types.
func TestPackagesHaveALicenceAReadmeAndTypes(t *testing.T) {
	testkit.Clients.Need(t)
	for language, files := range map[string]map[string]string{ // patterns of files in the package, and what each contains
		"typescript": {
			"node_modules/@cric-talk/guards/LICENSE": "LICENSE", "node_modules/@cric-talk/guards/README.md": "clients/typescript/README.md",
			"node_modules/@cric-talk/guards/package.json": "clients/typescript/package.json",
		},
		"python": {
			"venv/lib/python3*/site-packages/cric_talk_guards-*.dist-info/licenses/LICENSE": "LICENSE",
			"venv/lib/python3*/site-packages/cric_talk_guards-*.dist-info/METADATA":         "clients/python/README.md",
			"venv/lib/python3*/site-packages/guards/py.typed":                               "",
		},
	} {
		for pattern, file := range files {
			found, err := filepath.Glob(testkit.Package(t, language, filepath.FromSlash(pattern)))
			if err != nil || len(found) != 1 {
				t.Fatalf("%s is %q, want one file: %v", pattern, found, err)
			}
			if file != "" && !bytes.Contains(fileOf(t, found[0]), fileOf(t, filepath.Join(root, file))) {
				t.Errorf("%s does not contain %s", found[0], file)
			}
		}
	}
	for file, licence := range map[string]string{
		"typescript/node_modules/@cric-talk/guards/package.json": `"license": "Apache-2.0"`, "python/source/pyproject.toml": `license = "Apache-2.0"`,
	} {
		language, name, _ := strings.Cut(file, "/")
		if !bytes.Contains(fileOf(t, testkit.Package(t, language, filepath.FromSlash(name))), []byte(licence)) {
			t.Errorf("%s lacks %s", file, licence)
		}
	}
}

// Node needs time for each package and each file that it loads, so the package of the
// TypeScript client needs no other package and has few files.
func TestTheTypeScriptPackageIsQuickToLoad(t *testing.T) {
	testkit.Clients.Need(t)
	var manifest struct{ Dependencies map[string]string }
	folder := testkit.Package(t, "typescript", filepath.Join("node_modules", "@cric-talk", "guards"))
	if err := json.Unmarshal(fileOf(t, filepath.Join(folder, "package.json")), &manifest); err != nil || len(manifest.Dependencies) > 0 {
		t.Errorf("it depends on %v (%v), want no other package", manifest.Dependencies, err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "dist", "*.js"))
	if err != nil || len(files) > 12 {
		t.Errorf("%d files with code (%v), want at most 12: %q", len(files), err, files)
	}
}

func fileOf(t testing.TB, name string) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile(name))(t)
}

func writeFile(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}
