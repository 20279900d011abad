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

// The first example of each README must run as it stands, with the package that
// a user installs, in a project that has nothing else.
func TestTheReadmesExampleRuns(t *testing.T) {
	python := func(t testing.TB, source []byte) []string {
		t.Helper()
		dir := t.TempDir()
		for name, content := range map[string][]byte{
			"app.py": source, "activities.py": fileOf(t, filepath.Join(root, "activities", "activities.py")),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return []string{testkit.Package(t, "python", filepath.Join("venv", "bin", "python")), filepath.Join(dir, "app.py")}
	}
	cloud := deploy(t)
	cloud.functions["posts-guard"].Ready(t)
	for language, tt := range map[string]struct {
		folder string // of the README
		fence  string
		run    func(testing.TB, []byte) []string // returns the command that runs the example
		prints string                            // its beginning
	}{
		"Go":         {"client", "go", goProgram, "true 9 <nil>"},
		"TypeScript": {"clients/typescript", "js", node, "{\n  allowed: true,\n  reason: 'ok',"},
		"Python":     {"clients/python", "python", python, "Decision(allowed=True, reason='ok'"},
	} {
		t.Run(language, func(t *testing.T) {
			readme := fileOf(t, filepath.Join(root, tt.folder, "README.md"))
			example := regexp.MustCompile("(?s)```" + tt.fence + "\n(.*?)```").FindSubmatch(readme)
			if example == nil {
				t.Fatal("the README has no example")
			}
			testkit.Retry(t, func(t testing.TB) { // the example has the client's own timeouts
				user := rand.Text()
				command := tt.run(t, bytes.ReplaceAll(example[1], []byte(`"u1"`), []byte(`"`+user+`"`)))
				cmd := exec.Command(command[0], command[1:]...)
				for name, value := range environment(t, cloud.url) {
					cmd.Env = append(cmd.Env, name+"="+value)
				}
				var failed bytes.Buffer
				cmd.Stderr = &failed
				if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), tt.prints) {
					t.Errorf("%v, printed %s, want %s\n%s", err, out, tt.prints, &failed)
				}
				if counted := cloud.counted(t, user); counted != 1 {
					t.Errorf("%d actions are counted, want 1", counted)
				}
			})
		})
	}
}

// goProgram builds a program in a module of its own, which requires this one.
func goProgram(t testing.TB, source []byte) []string {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(fileOf(t, filepath.Join(root, "go.mod"))), "\n")
	if err := os.CopyFS(filepath.Join(dir, "activities"), os.DirFS(filepath.Join(here, "activities"))); err != nil {
		t.Fatal(err)
	}
	module := "module example.com/app\n" + requires + "\nrequire github.com/cric-talk/guards v0.0.0\nreplace github.com/cric-talk/guards => " + here + "\n"
	for name, content := range map[string][]byte{
		"main.go": source, "go.mod": []byte(module), "go.sum": fileOf(t, filepath.Join(root, "go.sum")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", "program", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{filepath.Join(dir, "program")}
}

// docs/calling.md has a command for each language. Those of npm and pip name the
// file that make packages built from the client. That of Go runs.
func TestTheCommandsThatInstallAClient(t *testing.T) {
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
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "activities"), os.DirFS(filepath.Join(here, "activities"))); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"post.go": program[1], "go.mod": "module example.com/app\n", "go.sum": string(fileOf(t, filepath.Join(root, "go.sum"))),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command("sh", "-ec", strings.ReplaceAll(install[1], "CHECKOUT", here)+" && go build -o post .")
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPackagesHaveALicenceAReadmeAndTypes(t *testing.T) {
	t.Run("Go", func(t *testing.T) { // the module is the package
		fileOf(t, filepath.Join(root, "LICENSE"))
		fileOf(t, filepath.Join(root, "client", "README.md"))
	})
	t.Run("TypeScript", func(t *testing.T) {
		dir := testkit.Package(t, "typescript", filepath.Join("node_modules", "@cric-talk", "guards"))
		sameFile(t, filepath.Join(dir, "LICENSE"), filepath.Join(root, "LICENSE"))
		sameFile(t, filepath.Join(dir, "README.md"), filepath.Join(root, "clients", "typescript", "README.md"))
		var about struct {
			License string
			Exports map[string]json.RawMessage
		}
		if err := json.Unmarshal(fileOf(t, filepath.Join(dir, "package.json")), &about); err != nil || about.License != "Apache-2.0" {
			t.Errorf("the licence is %q, want Apache-2.0: %v", about.License, err)
		}
		for name, files := range about.Exports {
			var export struct{ Types, Default string }
			if name == "./package.json" {
				continue
			}
			if err := json.Unmarshal(files, &export); err != nil || export.Types == "" || export.Default == "" {
				t.Errorf("%s has no types: %s, %v", name, files, err)
				continue
			}
			fileOf(t, filepath.Join(dir, export.Types))
			fileOf(t, filepath.Join(dir, export.Default))
		}
	})
	t.Run("Python", func(t *testing.T) {
		packages := testkit.Package(t, "python", filepath.Join("venv", "lib", "python3*", "site-packages"))
		one := func(pattern string) string {
			found, err := filepath.Glob(filepath.Join(packages, pattern))
			if err != nil || len(found) != 1 {
				t.Fatalf("%s is %q, want one file: %v", pattern, found, err)
			}
			return found[0]
		}
		one("guards/py.typed")
		sameFile(t, one("cric_talk_guards-*.dist-info/licenses/LICENSE"), filepath.Join(root, "LICENSE"))
		about := string(fileOf(t, one("cric_talk_guards-*.dist-info/METADATA")))
		if readme := string(fileOf(t, filepath.Join(root, "clients", "python", "README.md"))); !strings.Contains(about, readme) || !strings.Contains(about, "License-Expression: Apache-2.0\n") {
			t.Error("the package's description is not the README, or its licence is not Apache-2.0")
		}
	})
}

func sameFile(t *testing.T, got, want string) {
	t.Helper()
	if !bytes.Equal(fileOf(t, got), fileOf(t, want)) {
		t.Errorf("%s is not %s", got, want)
	}
}

func fileOf(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
