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
	main := regexp.MustCompile(`^(functions/[^/]+|cmd/guards(-agent)?|cmd/generic/[^/]+)/main\.go$`)
	for name, content := range testkit.Files(t) {
		most := 400
		if main.MatchString(name) {
			most = 39
		}
		if lines := bytes.Count(content, []byte("\n")); path.Ext(name) == ".go" && lines > most {
			t.Errorf("%s has %d lines, want at most %d", name, lines, most)
		}
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
	var overlay struct{ Replace map[string]string } // by absolute name
	if file, ok := strings.CutPrefix(os.Getenv("GOFLAGS"), "-overlay="); ok {
		content, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(content, &overlay)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(cmp.Or(overlay.Replace[absolute], name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
