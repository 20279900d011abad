// Package planted keeps mistakes that a programmer could make in this project,
// and checks that the tests catch each of them.
//
// Each mistake is a file in the folder patches. For example, fixed-one-more:
//
//	A fixed window admits one action more than its limit.
//
//	tests: internal/policy
//	finds: explore simulate
//
//	--- a/internal/policy/fixed.go
//	+++ b/internal/policy/fixed.go
//	@@ -47,3 +47,3 @@
//	 func (p fixed) take(_, n int64, _ uint64, s State) (Update, bool) {
//	-	most := p.limit - n
//	+	most := p.limit - n + 1
//	 	return Update{
//
// The text at the top describes the mistake. Then come these fields:
//
//	tests    the folders whose tests run, in this order, until one fails
//	finds    the proofs that find the mistake without any other test; may be absent
//	beyond   why the explorer can't find it, although it runs the changed code; may be absent
//	reverts  the fixed bug that the mistake brings back; may be absent
//
// A patch has one line of context on each side of a change, so that most edits
// leave it valid. It is found by its lines and not by their numbers.
//
// A mistake is never written to the project. The go command takes the changed
// files from another folder, with its flag -overlay. So a patch changes Go files,
// or template.yaml, which a test reads through the overlay. The clients in other languages
// are copied to another folder with the mistake.
package planted

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// A Bug is one planted mistake.
type Bug struct {
	Name    string
	What    string   // what the mistake is, in a sentence or two
	Tests   []string // folders, such as internal/policy
	Finds   []string // proofs, such as explore
	Beyond  string   // why the explorer can't find it; empty: it does, or it does not run that code
	Reverts string   // the fixed bug that comes back; empty: none
	Changes []Change
}

// A Change replaces lines of one file.
type Change struct {
	File     string // from the root of the project
	Old, New string // whole lines
}

// Load reads every patch in a folder, in the order of their names.
func Load(folder fs.FS) ([]Bug, error) {
	names, err := fs.Glob(folder, "*.patch")
	if err != nil {
		return nil, err
	}
	bugs := make([]Bug, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		b, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		b.Name = strings.TrimSuffix(path.Base(name), ".patch")
		bugs = append(bugs, b)
	}
	return bugs, nil
}

// parse reads a patch without its name.
func parse(text string) (Bug, error) {
	head, diff, ok := strings.Cut(text, "\n--- ")
	if !ok {
		return Bug{}, fmt.Errorf("there is no line that begins with ---")
	}
	var b Bug
	what, fields, _ := strings.Cut(head, "\n\n")
	b.What = strings.Join(strings.Fields(what), " ")
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimSpace(value); name {
		case "":
		case "tests":
			b.Tests = strings.Fields(value)
		case "finds":
			b.Finds = strings.Fields(value)
		case "beyond":
			b.Beyond = value
		case "reverts":
			b.Reverts = value
		default:
			return Bug{}, fmt.Errorf("field is %q, want tests, finds, beyond or reverts", name)
		}
	}
	if b.What == "" || len(b.Tests) == 0 {
		return Bug{}, fmt.Errorf("the text at the top or the field tests is missing")
	}
	var err error
	b.Changes, err = changes("--- " + diff)
	return b, err
}

// changes reads the changes of a unified diff.
func changes(diff string) (list []Change, err error) {
	file := ""
	for line := range strings.Lines(diff) {
		mark, rest := line[:1], line[1:]
		switch {
		case strings.HasPrefix(line, "--- "):
			file = ""
			continue
		case strings.HasPrefix(line, "+++ b/"):
			file = strings.TrimSpace(strings.TrimPrefix(line, "+++ b/"))
			continue
		case mark == "@":
			list = append(list, Change{File: file})
			continue
		case mark == "\n": // an empty line of context whose space an editor removed
			mark, rest = " ", line
		}
		if file == "" || len(list) == 0 {
			return nil, fmt.Errorf("line %q is in no file, want +++ b/FILE and @@ before it", line)
		}
		c := &list[len(list)-1]
		switch mark {
		case " ":
			c.Old += rest
			c.New += rest
		case "-":
			c.Old += rest
		case "+":
			c.New += rest
		default:
			return nil, fmt.Errorf("line %q of the diff begins with none of space, - and +", line)
		}
	}
	return list, nil
}
