// Package guards_test checks rules of this repository that neither the compiler nor a linter can check. Each file holds the
// rules of one subject: files, imports, documents, functions and the template.
package guards_test

import (
	"bytes"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/needs"
)

func TestGoFilesStaySmall(t *testing.T) {
	main := regexp.MustCompile(`^functions/[^/]+/main\.go$`)
	for name, content := range needs.Files(t, ".") {
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
	for name, content := range needs.Files(t, ".") {
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
	for name, content := range needs.Files(t, ".") {
		if found := local.Find(content); found != nil {
			t.Errorf("%s names a path that exists on one machine only: %.80q", name, found)
		}
	}
}

func TestEachMakeTargetHasAHelpText(t *testing.T) {
	makefile := read(t, "Makefile")
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

// read returns the content of one file.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
