package scaffold

import (
	"fmt"
	"go/ast"
	"go/format"
	"io/fs"
	"slices"
	"strings"
)

// validates is the test that limits_test.go has. Projects of older versions repeat each
// limit there and have no such test.
const validates = `
func TestTheLimitsAreValid(t *testing.T) {
	if err := guards.Validate(limits.All); err != nil {
		t.Error(err)
	}
}
`

// withValidation returns limits_test.go of a folder with a test of the limits, if it has
// none. A project need not have the file.
func withValidation(folder fs.FS) (c Change, err error) {
	if !exists(folder, testFile) {
		return c, nil
	}
	s, err := parse(folder, testFile)
	if err != nil || strings.Contains(s.text, "guards.Validate(") {
		return c, err
	}
	insertions := []insertion{{len(s.text), validates}}
	if !s.usesGuards() && len(s.file.Imports) > 0 {
		insertions = append(insertions, insertion{s.offset(s.file.Imports[len(s.file.Imports)-1].Pos()), `"` + Module + "\"\n"})
	}
	return s.change("a test that the limits are valid", insertions...)
}

// Older returns what a project of an older version has and no longer needs, as sentences.
func (p *Project) Older() (notes []string, err error) {
	if p.file != "" {
		return nil, nil
	}
	files, err := sources(p.root.FS())
	if err != nil {
		return nil, err
	}
	for _, s := range files {
		if calls := s.conversions(); len(calls) > 0 {
			text := s.text[s.offset(calls[0].Pos()):s.offset(calls[0].End())]
			notes = append(notes, s.name+": write "+strings.TrimSuffix(strings.TrimPrefix(text, "guards.Limit("), ")")+" in place of "+text+"; guards generate --shorten does")
		}
	}
	if exists(p.root.FS(), testFile) {
		s, err := parse(p.root.FS(), testFile)
		if err != nil {
			return nil, err
		}
		if s.value("promised") != nil {
			notes = append(notes, testFile+": the list promised repeats each limit, so a change needs both files; it can go, and so can its test TestLimitsAreAsPromised")
		}
	}
	return notes, nil
}

// Shortened returns the files of package limits with literal texts instead of conversions
// to guards.Limit.
func (p *Project) Shortened() (changes []Change, err error) {
	if p.file != "" {
		return nil, nil
	}
	files, err := sources(p.root.FS())
	if err != nil {
		return nil, err
	}
	for _, s := range files {
		calls := s.conversions()
		text := s.text
		for _, call := range slices.Backward(calls) {
			text = text[:s.offset(call.Pos())] + s.text[s.offset(call.Args[0].Pos()):s.offset(call.Args[0].End())] + text[s.offset(call.End()):]
		}
		if len(calls) > 0 {
			changes = append(changes, Change{File: s.name, What: "the shorter form of limits", Before: s.text, After: text})
		}
	}
	return changes, nil
}

// conversions returns the conversions of literal texts to guards.Limit, in their order.
func (s *source) conversions() (found []*ast.CallExpr) {
	for _, call := range all[*ast.CallExpr](s) {
		if len(call.Args) == 1 && literal(call.Args[0]) != "" && isLimit(call.Fun) {
			found = append(found, call)
		}
	}
	return found
}

// isLimit reports whether an expression is guards.Limit.
func isLimit(e ast.Expr) bool {
	f, ok := e.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Limit" {
		return false
	}
	from, ok := f.X.(*ast.Ident)
	return ok && from.Name == "guards"
}

// agentFile is the program that a project's apps can have beside them. It is the same for all
// guards, so a project of an older version only lacks it.
const agentFile = "cmd/guards-agent/main.go"

const agentText = `// Guards-agent answers for the guards beside an app, on the same machine.
package main

import (
	"%s/agent"
	"%s/limits"
)

func main() { agent.Main(limits.All) }
`

// withAgent returns the agent's program if a folder has none. Somebody may have changed it.
func withAgent(folder fs.FS) (c Change, err error) {
	if exists(folder, agentFile) {
		return c, nil
	}
	module, err := moduleOf(folder)
	if err != nil {
		return c, err
	}
	text, err := format.Source(fmt.Appendf(nil, agentText, Module, module))
	return Change{File: agentFile, What: "the agent, which answers beside an app", New: true, After: string(text)}, err
}
