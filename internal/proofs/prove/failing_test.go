package prove

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// Each proof has a page that shows how to read a failure. It is short, and its commands are real.
func TestEachProofHasAPageForItsFailures(t *testing.T) {
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	blocks := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```\n")
	for _, part := range Parts {
		page := filepath.Join("docs", "failing", part.Name+".md")
		content, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		if words := len(strings.Fields(blocks.ReplaceAllString(string(content), ""))); words > 300 {
			t.Errorf("%s has %d words, want at most 300 beside commands and output", page, words)
		}
		commands := 0
		for _, block := range blocks.FindAllStringSubmatch(string(content), -1) {
			for line := range strings.Lines(block[2]) {
				if block[1] == "sh" {
					commands++
					for _, problem := range problems(t, strings.TrimSpace(line)) {
						t.Errorf("%s: %s: %s", page, strings.TrimSpace(line), problem)
					}
				}
			}
		}
		if commands < 2 {
			t.Errorf("%s has %d commands, want one that fails, and one that repeats the failure", page, commands)
		}
	}
}

func TestACommandThatIsNotRealIsFound(t *testing.T) {
	t.Chdir("../../..")
	for _, line := range []string{
		"go test ./internal/proofs/absent",
		"go test ./internal/proofs/simulate -run=TestAbsent",
		"go test ./internal/proofs/simulate -sed=3",
		"TESTS=absent go test ./internal/proofs/simulate",
		"ABSENT=1 go test ./internal/proofs/simulate",
		"make absent",
		"make planted ABSENT=a",
		"git apply internal/proofs/planted/patches/absent.patch",
		"scripts/absent go test ./internal/proofs/simulate",
		"absent",
	} {
		if problems(t, line) == nil {
			t.Errorf("%s: no problem is found", line)
		}
	}
}

// ofGo are flags of go test.
var ofGo = []string{"run", "v", "count", "timeout", "fuzz", "fuzztime", "race"}

// problems returns what is not real in a command: its files, its tests, its flags and its
// variables. The current folder is the root of the project.
func problems(t *testing.T, line string) (list []string) {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(line, "'", ""))
	var sources, program string
	for _, word := range words {
		if strings.HasPrefix(word, "./") || strings.Contains(word, "/") && !strings.Contains(word, "=") {
			if _, err := os.Stat(word); err != nil {
				list = append(list, err.Error())
			}
			files, _ := filepath.Glob(filepath.Join(word, "*_test.go"))
			for _, name := range files {
				content, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				sources += string(content)
			}
		}
		if program == "" && slices.Contains([]string{"go", "make", "git"}, word) {
			program = word
		}
	}
	if program == "make" {
		content, err := os.ReadFile("Makefile")
		if err != nil {
			t.Fatal(err)
		}
		sources = string(content)
	}
	for i, word := range words {
		name, value, assigned := strings.Cut(strings.TrimPrefix(word, "-"), "=")
		known := true
		switch flag := strings.HasPrefix(word, "-"); {
		case program == "":
			known = false
		case program == "git":
		case flag && (name == "run" || name == "fuzz"):
			test := strings.Trim(strings.Split(value, "/")[0], "^$")
			known = value == "^$" || test != "" && regexp.MustCompile(`(?m)^func `+test).MatchString(sources)
		case flag:
			known = slices.Contains(ofGo, name) || strings.Contains(sources, `("`+name+`", `)
		case assigned && program == "make":
			known = strings.Contains(sources, "$("+name+")")
		case name == "TESTS":
			known = testkit.Part(value) == testkit.Long
		case assigned:
			known = strings.Contains(sources, `"`+name+`"`)
		case program == "make" && i > 0:
			known = strings.Contains(sources, "\n"+word+":")
		}
		if !known {
			list = append(list, word+" is not known")
		}
	}
	return list
}
