// Package rules_test checks rules of this repository that neither the compiler nor a linter can check. Each file holds the
// rules of one subject: files, imports, documents, functions and the template.
package rules_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestGoFilesStaySmall(t *testing.T) {
	main := regexp.MustCompile(`^functions/[^/]+/main\.go$`)
	for name, content := range testkit.Files(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		most := 400
		if main.MatchString(name) {
			most = 39
		}
		checkLines(t, name, content, most)
	}
}

func TestTestFilesAndCommandsStaySmall(t *testing.T) {
	for name, content := range testkit.Files(t) {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			checkLines(t, name, content, 400)
		case name == "cmd/guards/main.go":
			checkLines(t, name, content, 39)
		}
	}
}

func checkLines(t *testing.T, name string, content []byte, most int) {
	t.Helper()
	if lines := bytes.Count(content, []byte("\n")); lines > most {
		t.Errorf("%s has %d lines, want at most %d", name, lines, most)
	}
}

func TestNoFileNamesAPathOfOneMachine(t *testing.T) {
	local := regexp.MustCompile(`(?m)(^|[^\w.])/(root|home|work|Users)/.*$`)
	for name, content := range testkit.Files(t) {
		if found := local.Find(content); found != nil {
			t.Errorf("%s names a path that exists on one machine only: %.80q", name, found)
		}
	}
}

func TestEachMakeTargetHasAHelpText(t *testing.T) {
	makefile := read(t, "Makefile") + read(t, "project.mk")
	withHelp := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^([\w-]+):.* ## \S`).FindAllStringSubmatch(makefile, -1) {
		withHelp[found[1]] = true
	}
	for _, found := range regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindAllStringSubmatch(makefile, -1) {
		for target := range strings.FieldsSeq(found[1]) {
			if !withHelp[target] {
				t.Errorf("make %s has no help: add a text after ## to its rule", target)
			}
			delete(withHelp, target)
		}
	}
	for _, target := range slices.Sorted(maps.Keys(withHelp)) {
		t.Errorf("make %s is not .PHONY: a file of that name would hide it", target)
	}
}

// TestMain runs the tests in the folder of the project, whose files they read.
func TestMain(m *testing.M) {
	root, err := testkit.Root()
	if err == nil {
		err = os.Chdir(root)
	}
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// read returns the content of one file. The go command's flag -overlay can plant a mistake in a source; read finds one that is
// planted in another file.
func read(t *testing.T, name string) string {
	t.Helper()
	if list, ok := strings.CutPrefix(os.Getenv("GOFLAGS"), "-overlay="); ok {
		name = planted(t, list, name)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// planted returns the file that takes the place of name, or name itself. List is the file that -overlay names.
func planted(t *testing.T, list, name string) string {
	t.Helper()
	content, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &overlay); err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Or(overlay.Replace[absolute], name)
}
