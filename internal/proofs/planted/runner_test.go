package planted_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/planted"
)

// tiny is a project with one function and one test, and a test that fails.
var tiny = map[string]string{
	"broken/a_test.go": "package broken\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { t.Error(\"broken\") }\n",
	"go.mod":           "module tiny\n\ngo 1.26\n",
	"add/add.go":       "package add\n\n// Add adds.\nfunc Add(a, b int) int {\n\tc := a + b\n\treturn c\n}\n",
	"add/a_test.go":    "package add\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tt.Run(\"2+2\", func(t *testing.T) {\n\t\tif Add(2, 2) != 4 {\n\t\t\tt.Error(\"wrong\")\n\t\t}\n\t})\n}\n",
}

// A mistake that a test catches, one that none catches, and one that proves nothing are
// three outcomes. The project itself stays as it is.
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
	for _, tt := range []struct{ old, new, test, problem string }{
		{"\tc := a + b\n", "\tc := a - b\n", "add TestAdd", ""},
		{"\tc := a + b\n", "\tc := a * b\n", "", ""},
		{"\tc := a + b\n", "\tc := a + d\n", "", "do not compile"},
		{"\tc := a % b\n", "", "", "0 places have these lines"},
	} {
		b := planted.Bug{Changes: []planted.Change{{File: "add/add.go", Old: tt.old, New: tt.new}}}
		runner := planted.Runner{Root: root}
		got, err := runner.Run(t.Context(), b, []string{"add"})
		if got.Test != tt.test || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%q: caught by %q, error %v, want %q and an error with %q", tt.new, got.Test, err, tt.test, tt.problem)
		}
	}
	b := planted.Bug{Name: "minus", Changes: []planted.Change{{File: "add/add.go", Old: "\tc := a + b\n", New: "\tc := a - b\n"}}}
	for _, known := range []string{"add TestAdd", "add TestGone", "gone TestAdd"} {
		runner := planted.Runner{Root: root, Known: map[string]string{"minus": known}}
		if got, err := runner.Run(t.Context(), b, []string{"add"}); got.Test != "add TestAdd" || err != nil {
			t.Errorf("%s caught it before: %q (%v), want TestAdd", known, got.Test, err)
		}
		for test, want := range map[string]bool{"add TestAdd": true, "broken TestBroken": false} {
			if passes, err := runner.Passes(t.Context(), test); passes != want || err != nil {
				t.Errorf("without a bug, %s passes: %v (%v), want %v", test, passes, err, want)
			}
		}
	}
	runner := planted.Runner{Root: root, All: true}
	got, err := runner.Run(t.Context(), b, []string{"add", "broken"})
	if want := []string{"add TestAdd", "add TestAdd/2+2", "broken TestBroken"}; !slices.Equal(got.All, want) || err != nil {
		t.Errorf("all tests that catch it: %q (%v), want %q", got.All, err, want)
	}
	for folder, want := range map[string]int{"add": 0, "broken": 1} {
		if broken, err := runner.Broken(t.Context(), folder); len(broken) != want || err != nil {
			t.Errorf("%s without a bug: %q (%v), want %d tests", folder, broken, err, want)
		}
	}
	content, err := os.ReadFile(filepath.Join(root, "add/add.go"))
	if err != nil || string(content) != tiny["add/add.go"] {
		t.Errorf("the project was changed to %q (%v)", content, err)
	}
}
