package scaffold

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// A source is a file of Go with its syntax. It knows where something stands and
// evaluates only literal texts.
type source struct {
	name, text string
	tokens     *token.FileSet
	file       *ast.File
}

func parse(folder fs.FS, name string) (*source, error) {
	text, err := fs.ReadFile(folder, name)
	if err != nil {
		return nil, err
	}
	s := &source{name: name, text: string(text), tokens: token.NewFileSet()}
	s.file, err = parser.ParseFile(s.tokens, name, text, parser.SkipObjectResolution)
	return s, err
}

// sources returns the files of package limits, without its tests.
func sources(folder fs.FS) (all []*source, err error) {
	files, err := fs.Glob(folder, "limits/*.go")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		s, err := parse(folder, name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, err
}

// all returns the nodes of one type.
func all[N ast.Node](s *source) (found []N) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n, ok := n.(N); ok {
			found = append(found, n)
		}
		return true
	})
	return found
}

// contains reports whether a literal text of the file is this one.
func (s *source) contains(text string) bool {
	return slices.ContainsFunc(all[*ast.BasicLit](s), func(lit *ast.BasicLit) bool { return literal(lit) == text })
}

// value returns what a declaration gives to a name, or nil.
func (s *source) value(name string) ast.Expr {
	for _, v := range all[*ast.ValueSpec](s) {
		if len(v.Names) == 1 && v.Names[0].Name == name && len(v.Values) == 1 {
			return v.Values[0]
		}
	}
	return nil
}

// grouped reports whether the declaration of a name is in a list in parentheses.
func (s *source) grouped(name string) bool {
	return slices.ContainsFunc(all[*ast.GenDecl](s), func(d *ast.GenDecl) bool {
		return d.Lparen.IsValid() && slices.ContainsFunc(d.Specs, func(spec ast.Spec) bool {
			v, ok := spec.(*ast.ValueSpec)
			return ok && v.Names[0].Name == name
		})
	})
}

// named returns the constant or variable that holds a text, or the quoted text.
func (s *source) named(text string) string {
	for _, v := range all[*ast.ValueSpec](s) {
		if len(v.Names) == 1 && len(v.Values) == 1 && literal(v.Values[0]) == text {
			return v.Names[0].Name
		}
	}
	return strconv.Quote(text)
}

// field returns the value of a field of a composite value, or nil.
func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}

// literal returns a literal text, or an empty one for anything else.
func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			return text
		}
	}
	return ""
}

// An insertion is a text to put before an offset.
type insertion struct {
	at   int
	text string
}

// element returns the insertion of an element at the end of a list.
func (s *source) element(list *ast.CompositeLit, text string) insertion {
	if len(list.Elts) == 0 {
		return insertion{s.offset(list.Rbrace), text}
	}
	last := list.Elts[len(list.Elts)-1].End()
	if at := s.endOfLine(last); at < s.offset(list.Rbrace) {
		return insertion{at, "\n" + text + ","}
	}
	return insertion{s.offset(last), ", " + text}
}

// change returns the file with insertions, in the form of gofmt.
func (s *source) change(what string, insertions ...insertion) (Change, error) {
	slices.SortFunc(insertions, func(a, b insertion) int { return b.at - a.at })
	text := s.text
	for _, i := range insertions {
		text = text[:i.at] + i.text + text[i.at:]
	}
	formatted, err := format.Source([]byte(text))
	if err != nil {
		err = fmt.Errorf("%s has a form that guards new can't change: %w", s.name, err)
	}
	return Change{File: s.name, What: what, Before: s.text, After: string(formatted)}, err
}

func (s *source) offset(p token.Pos) int { return s.tokens.Position(p).Offset }

// endOfLine returns the offset of the line break after a position.
func (s *source) endOfLine(p token.Pos) int {
	from := s.offset(p)
	return from + max(0, strings.IndexByte(s.text[from:], '\n'))
}
