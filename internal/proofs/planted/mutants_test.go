package planted_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	policies = "internal/policy"                      // the package that is mutated
	listed   = "internal/policy/testdata/mutants.txt" // the survivors and why they survive
)

// A mutant is one change that gremlins makes, such as < for <=.
type mutant struct {
	File, Line string // Line is the source, without spaces at its ends
	Kind       string
	Column     int
}

func (m mutant) String() string {
	return fmt.Sprintf("%s | %s | %s at column %d", m.File, m.Line, m.Kind, m.Column)
}

// explained reads the list of survivors. Each has a line of its own:
//
//	file | source line | kind of mutant at column N | why no test can catch it
func explained(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, listed))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.LastIndex(line, " | ")
		if end < 0 || strings.Count(line, " | ") < 3 {
			t.Errorf("%s: %q has not four parts with \" | \" between them", listed, line)
			continue
		}
		list[line[:end]] = line[end+len(" | "):]
	}
	return list
}

// An entry whose line was edited explains nothing any more.
func TestEachExplainedMutantIsOfTodaysSource(t *testing.T) {
	for entry := range explained(t) {
		file, rest, _ := strings.Cut(entry, " | ")
		line := rest[:strings.LastIndex(rest, " | ")]
		if !slices.Contains(sourceLines(t, file), line) {
			t.Errorf("%s: %s has no line %q", listed, file, line)
		}
	}
}

// sourceLines returns the lines of a file of the mutated package, without the
// spaces at their ends.
func sourceLines(t *testing.T, file string) []string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, policies, file))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

// Each mutant of the policies is caught by a test of their package, or the list
// explains why it cannot be. This takes a quarter of an hour, so it runs only
// under make mutation.
func TestEachSurvivingMutantIsExplained(t *testing.T) {
	if os.Getenv("MUTATION") == "" {
		t.Skip("make mutation runs this test")
	}
	report := mutate(t)
	list, counts := explained(t), map[string]int{}
	for _, file := range report.Files {
		name := strings.TrimPrefix(file.Name, policies+"/")
		lines := sourceLines(t, name)
		for _, m := range file.Mutations {
			counts[m.Status]++
			if m.Status != "LIVED" {
				continue
			}
			survivor := mutant{name, lines[m.Line-1], m.Type, m.Column}.String()
			if why, ok := list[survivor]; !ok || strings.TrimSpace(why) == "" {
				t.Errorf("%s:%d: a mutant survives, and %s does not explain it:\n%s", name, m.Line, listed, survivor)
			}
		}
	}
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%5d %s\n", counts[status], strings.ToLower(status))
	}
	if counts["KILLED"] == 0 {
		t.Error("no mutant is killed, so nothing was tested")
	}
}

// A report is what gremlins writes.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []mutation
	}
}

type mutation struct {
	Type, Status string
	Line, Column int
}

// mutate runs gremlins on a copy of the policies, which compiles quickly. Then it
// tries the cases that gremlins leaves out. The copy lacks the test of a new
// kind, which needs the packages of the stores.
func mutate(t *testing.T) (r report) {
	t.Helper()
	temp := t.TempDir()
	gremlins := filepath.Join(temp, "gremlins")
	run(t, root, "go", "build", "-modfile=tools/mutation.mod", "-o", gremlins, "github.com/go-gremlins/gremlins/cmd/gremlins")
	module := filepath.Join(temp, "module")
	if err := os.CopyFS(filepath.Join(module, policies), os.DirFS(filepath.Join(root, policies))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		write(t, filepath.Join(module, name), content, err)
	}
	if err := os.Remove(filepath.Join(module, policies, "newkind_test.go")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(module, policies, "quick_test.go"), []byte(quick), nil)
	out := filepath.Join(temp, "report.json")
	args := []string{"unleash", "--workers=2", "--timeout-coefficient=" + cmp.Or(os.Getenv("PATIENCE"), "60"), "--exclude-files=policytest", "--output=" + out, "./" + policies}
	t.Setenv("GOFLAGS", "-vet=off")
	run(t, module, gremlins, args...)
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		t.Fatal(err)
	}
	for _, file := range r.Files {
		for i := range file.Mutations {
			if m := &file.Mutations[i]; m.Status == "NOT COVERED" {
				m.Status = tryCase(t, module, file.Name, m)
			}
		}
	}
	return r
}

// tryCase tests a mutant of a case of a switch. Gremlins does not, because Go's
// coverage does not include the condition of a case. Other mutants that are not
// covered, such as those of constants, stay so.
func tryCase(t *testing.T, module, name string, m *mutation) string {
	t.Helper()
	name = filepath.Join(module, policies, strings.TrimPrefix(name, policies+"/"))
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(source), "\n")
	line := lines[m.Line-1]
	if !strings.HasPrefix(strings.TrimSpace(line), "case ") {
		return m.Status
	}
	before, after := line[:m.Column-1], line[m.Column-1:]
	for _, change := range operators[m.Type] {
		from, to, _ := strings.Cut(change, " ")
		if rest, ok := strings.CutPrefix(after, from); ok {
			lines[m.Line-1] = before + to + rest
			break
		}
	}
	if lines[m.Line-1] == line {
		t.Fatalf("%s:%d: there is no operator for %s in column %d", name, m.Line, m.Type, m.Column)
	}
	write(t, name, []byte(strings.Join(lines, "")), nil)
	defer write(t, name, source, nil)
	cmd := exec.CommandContext(t.Context(), "go", "test", "./"+policies)
	if cmd.Dir = module; cmd.Run() != nil {
		return "KILLED"
	}
	return "LIVED"
}

// operators lists the replacements of each kind of mutant, such as - for +.
var operators = map[string][]string{
	"ARITHMETIC_BASE":       {"+ -", "- +", "* /", "/ *", "% *"},
	"CONDITIONALS_BOUNDARY": {"<= <", ">= >", "< <=", "> >="},
	"CONDITIONALS_NEGATION": {"== !=", "!= ==", "<= >", ">= <", "< >=", "> <="},
	"INVERT_LOGICAL":        {"&& ||", "|| &&"},
	"INVERT_NEGATIVES":      {"- +"},
}

// quick makes the property tests of the copy short.
const quick = `package policy_test

import (
	"flag"

	_ "pgregory.net/rapid"
)

func init() {
	for name, value := range map[string]string{"rapid.checks": "50", "rapid.shrinktime": "0s", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}
`

func write(t *testing.T, name string, content []byte, err error) {
	t.Helper()
	if err == nil {
		err = os.WriteFile(name, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, &out)
	}
}
