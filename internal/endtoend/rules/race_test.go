package rules_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// scripts/test runs two lists of packages without the race detector. A package
// that -short shortens must be in one of them, or some cases would never run. The
// code of a package that only runs without the detector must not start goroutines.
func TestScriptsTestLeavesNothingOut(t *testing.T) {
	all := testkit.Files(t)
	sequential, shortened := patterns(t, all, "sequential"), patterns(t, all, "shortened")
	shortens := regexp.MustCompile(`testing\.Short\(\)|"pgregory\.net/rapid"|policytest\.(Run|Reach|Count)\(|/storetest"`)
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
			if shortens.Match(content) && !matches(dir, sequential) && !matches(dir, shortened) {
				t.Errorf("%s has fewer cases with -short: add its folder to a list in scripts/test", name)
			}
			for _, test := range defined.FindAllSubmatch(content, -1) {
				if _, ok := skipped[string(test[1])]; !ok {
					continue
				}
				if !matches(dir, shortened) {
					t.Errorf("no run of scripts/test has %s of %s: add its folder to the list %q", test[1], dir, "shortened")
				}
				skipped[string(test[1])] = true
			}
		case matches(dir, sequential):
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
	list := regexp.MustCompile(`(?m)^` + name + `='(.*)'$`).FindSubmatch(all["scripts/test"])
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
