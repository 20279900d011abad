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
	absolute := testkit.Must(filepath.Abs(name))(t)
	return string(testkit.Must(os.ReadFile(cmp.Or(overlay.Replace[absolute], name)))(t))
}

// parts finds the uses of each part of the tests, which make test leaves out.
var parts = map[testkit.Part]*regexp.Regexp{
	testkit.Clients:  regexp.MustCompile(`testkit\.Clients\.`),
	testkit.Projects: regexp.MustCompile(`testkit\.Projects\.`),
	testkit.Long:     regexp.MustCompile(`testkit\.(Long\.|Bound[(\[])|prove\.Quick\(|policytest\.Run\(`),
}

// CI runs scripts/test all. Its run without the race detector has each part and each list of packages.
func TestCIRunsEachPartOfTheTests(t *testing.T) {
	all := testkit.Files(t)
	for file, line := range map[string]string{
		".ci/run":      `\nfor target in [\w -]*\btest-all\b[\w -]*; do\n`,
		"Makefile":     `\ntest-all: .*\n(\t.*\n)*\t@\$\(SERVERS\) scripts/test all\n`,
		"scripts/test": `\nall\)\n\tTESTS=clients race "\$@" &\n.*\n\tTESTS='` + testkit.AllParts + `' run -parallel=4 "\$@" \$clients \$projects \$slow \$long \$sequential \|\|`,
	} {
		if !regexp.MustCompile(line).Match(all[file]) {
			t.Errorf("%s has no lines like %s", file, line)
		}
	}
	for part := range parts {
		if !strings.Contains(string(all["Makefile"]), "\ntest-"+string(part)+": ") || !strings.Contains(string(all["scripts/test"]), "(make test-"+string(part)) {
			t.Errorf("there is no make test-%s, or make test does not print that it leaves it out", part)
		}
	}
}

// The run of scripts/test with the race detector has all packages but those of a list, without the parts of the tests. So a
// package with tests of a part must be in the list of that part, or they would never run. The code of a package that only runs
// without the detector must not start goroutines.
func TestScriptsTestLeavesNothingOut(t *testing.T) {
	all := testkit.Files(t)
	lists := map[string][]string{"slow": patterns(t, all, "slow"), "sequential": patterns(t, all, "sequential")}
	for part := range parts {
		lists[string(part)] = patterns(t, all, string(part))
	}
	skipped := map[string]bool{} // by name, whether such a test exists
	for _, test := range patterns(t, all, "once") {
		skipped[test] = false
	}
	defined := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	goroutine := regexp.MustCompile(`\bgo func\b|\bgo [\w.]+\(|\.Go\(`)
	for name, content := range all {
		dir := "./" + path.Dir(name)
		switch {
		case path.Ext(name) != ".go":
		case strings.HasSuffix(name, "_test.go"):
			for part, uses := range parts {
				other := dir == "./internal/testkit" || part == testkit.Clients && dir == "./internal/workbench/console" // scripts/test names it browser
				if uses.Match(content) && !matches(dir, lists[string(part)]) && !other {
					t.Errorf("%s has tests of the part %s: add its folder to that list in scripts/test", name, part)
				}
			}
			for _, test := range defined.FindAllSubmatch(content, -1) {
				if _, ok := skipped[string(test[1])]; !ok {
					continue
				}
				if !matches(dir, lists["slow"]) && !matches(dir, lists["long"]) {
					t.Errorf("no run of scripts/test has %s of %s: add its folder to the list %q", test[1], dir, "slow")
				}
				skipped[string(test[1])] = true
			}
		case matches(dir, lists["sequential"]):
			if found := goroutine.Find(content); found != nil {
				t.Errorf("%s has %q: remove its folder from the list %q in scripts/test", name, found, "sequential")
			}
		}
	}
	for test, exists := range skipped {
		if !exists {
			t.Errorf("there is no %s: remove it from the list %q in scripts/test", test, "once")
		}
	}
}

// patterns returns a list of scripts/test.
func patterns(t *testing.T, all map[string][]byte, name string) []string {
	t.Helper()
	list := regexp.MustCompile(`(?m)^` + name + `='?([^'\n]*)'?$`).FindSubmatch(all["scripts/test"])
	if list == nil {
		t.Fatalf("scripts/test has no list %q", name)
	}
	return strings.Fields(string(list[1]))
}

// matches reports whether one of the patterns selects the folder.
func matches(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		parent, below := strings.CutSuffix(pattern, "/...")
		return dir == parent || below && strings.HasPrefix(dir, parent+"/")
	})
}
