package planted_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cric-talk/guards/internal/proofs/planted"
)

// tiny is a project with one function and one test.
var tiny = map[string]string{
	"go.mod":        "module tiny\n\ngo 1.26\n",
	"add/add.go":    "package add\n\n// Add adds.\nfunc Add(a, b int) int {\n\tc := a + b\n\treturn c\n}\n",
	"add/a_test.go": "package add\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tt.Run(\"2+2\", func(t *testing.T) {\n\t\tif Add(2, 2) != 4 {\n\t\t\tt.Error(\"wrong\")\n\t\t}\n\t})\n}\n",
}

// patch returns a patch of the tiny project.
func patch(remove, add string) string {
	return "Add is wrong.\n\ntests: add\nfinds: simulate\nbeyond: it has three operands\n\n--- a/add/add.go\n+++ b/add/add.go\n@@ -5 +5 @@\n-" + remove + "\n+" + add + "\n"
}

func TestTheRunnerSaysWhichTestFails(t *testing.T) {
	root := t.TempDir()
	for name, content := range tiny {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, change, test, problem string }{
		{"a bug that the test catches", "\tc := a - b", "add TestAdd", ""},
		{"a bug that the test does not catch", "\tc := a * b", "", ""},
		{"a bug that does not compile", "\tc := a + d", "", "do not compile"},
		{"a bug in a line that is not there", "", "", "0 places have these lines"},
	} {
		remove := "\tc := a + b"
		if tt.change == "" {
			remove = "\tc := a % b"
		}
		bugs, err := planted.Load(fstest.MapFS{"bug.patch": {Data: []byte(patch(remove, tt.change))}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := planted.Runner{Root: root}.Run(t.Context(), bugs[0], bugs[0].Tests)
		if got.Test != tt.test || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: caught by %q, error %v, want %q and an error with %q", tt.name, got.Test, err, tt.test, tt.problem)
		}
	}
	content, err := os.ReadFile(filepath.Join(root, "add/add.go"))
	if err != nil || string(content) != tiny["add/add.go"] {
		t.Errorf("the project was changed to %q (%v)", content, err)
	}
}

func TestAPatchIsReadWithItsFields(t *testing.T) {
	bugs, err := planted.Load(fstest.MapFS{"a-bug.patch": {Data: []byte(patch("x", "y"))}})
	if err != nil || len(bugs) != 1 {
		t.Fatal(bugs, err)
	}
	b := bugs[0]
	if b.Name != "a-bug" || b.What != "Add is wrong." || strings.Join(b.Tests, " ") != "add" || strings.Join(b.Finds, " ") != "simulate" || b.Beyond != "it has three operands" ||
		len(b.Changes) != 1 || b.Changes[0] != (planted.Change{File: "add/add.go", Old: "x\n", New: "y\n"}) {
		t.Errorf("the patch reads as %+v", b)
	}
	for name, text := range map[string]string{
		"no diff":        "Add is wrong.\n\ntests: add\n",
		"no tests":       strings.Replace(patch("x", "y"), "tests: add\n", "", 1),
		"no text":        strings.Replace(patch("x", "y"), "Add is wrong.", "", 1),
		"unknown field":  strings.Replace(patch("x", "y"), "finds", "find", 1),
		"no file":        strings.Replace(patch("x", "y"), "+++ b/add/add.go\n", "", 1),
		"a strange line": patch("x", "y") + "?\n",
	} {
		if _, err := planted.Load(fstest.MapFS{"a.patch": {Data: []byte(text)}}); err == nil {
			t.Errorf("%s: the patch is accepted", name)
		}
	}
}

// Lines that occur twice do not say where the change belongs.
func TestAChangeThatFitsTwiceIsRefused(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("x\ny\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := planted.Bug{Changes: []planted.Change{{File: "a.go", Old: "x\n", New: "z\n"}}}
	if _, err := b.Apply(root); err == nil || !strings.Contains(err.Error(), "2 places") {
		t.Errorf("got %v, want an error that names 2 places", err)
	}
	b.Changes[0].Old = "x\ny\n"
	if files, err := b.Apply(root); err != nil || files["a.go"] != "z\nx\n" {
		t.Errorf("got %q, %v", files, err)
	}
}
