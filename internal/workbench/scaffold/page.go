package scaffold

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/token"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards"
)

// Differs returns a difference between the limits of a project's folder and a program's
// limits, such as: upload_photo has the limit 50/1m there and 5/1m here. It is empty if
// there is none, and for everything that only the compiler could tell, such as a limit that
// a function returns. So a program that was built from the folder as it is never differs.
func Differs(folder fs.FS, all []guards.Guard) string {
	files, err := sources(folder)
	if err != nil || !slices.ContainsFunc(files, (*source).usesGuards) {
		return ""
	}
	compiled := build.Default
	compiled.JoinPath = path.Join
	compiled.OpenFile = func(name string) (io.ReadCloser, error) { return folder.Open(name) }
	for _, s := range files {
		if match, err := compiled.MatchFile(path.Split(s.name)); err != nil || !match || s.depends() {
			return ""
		}
	}
	list := page(files).declared("All")
	if list == nil {
		return ""
	}
	return page(files).list("", list, reflect.ValueOf(all))
}

// usesGuards reports whether the file imports the package guards.
func (s *source) usesGuards() bool {
	return slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return literal(i.Path) == Module })
}

// depends reports whether the file's text alone does not tell what it declares: it is
// compiled under a condition, or it changes variables when the program starts.
func (s *source) depends() bool {
	return strings.Contains(s.text, "//go:build ") || slices.ContainsFunc(s.file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == "init"
	})
}

// A page is the package limits of a project. Its methods return a difference from a value
// of the program, or nothing if they find none.
type page []*source

// declared returns the value of a constant or a variable of the package, or nil.
func (p page) declared(name string) ast.Expr {
	for _, s := range p {
		for _, d := range s.file.Decls {
			if list, ok := d.(*ast.GenDecl); ok {
				for _, spec := range list.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 && v.Names[0].Name == name {
						return v.Values[0]
					}
				}
			}
		}
	}
	return nil
}

// resolve follows the names of constants and variables to their values.
func (p page) resolve(e ast.Expr) ast.Expr {
	for range 10 { // more is a cycle, which does not compile
		id, ok := e.(*ast.Ident)
		if !ok || p.declared(id.Name) == nil {
			break
		}
		e = p.declared(id.Name)
	}
	return e
}

// list compares guards, activities or subjects by their names. Their order changes nothing.
func (p page) list(of string, e ast.Expr, is reflect.Value) string {
	var names []string
	var elements []ast.Expr
	if e != nil {
		lit, ok := p.resolve(e).(*ast.CompositeLit)
		if !ok {
			return ""
		}
		elements = lit.Elts
	}
	for _, e := range elements {
		lit, ok := p.resolve(e).(*ast.CompositeLit)
		if !ok {
			return ""
		}
		name, ok := p.text(field(lit, "Name"))
		if !ok {
			return ""
		}
		names = append(names, name)
		i := 0
		for i < is.Len() && nameOf(is.Index(i)) != name {
			i++
		}
		if i == is.Len() {
			return of + name + " is only there"
		}
		if what := p.fields(of+name, lit, is.Index(i)); what != "" {
			return what
		}
	}
	for i := range is.Len() {
		if name := nameOf(is.Index(i)); !slices.Contains(names, name) {
			return of + name + " is only here"
		}
	}
	return ""
}

// nameOf returns the name of a guard, an activity or a subject.
func nameOf(v reflect.Value) string { return v.FieldByName("Name").String() }

// fields compares the fields of a guard, an activity or a subject.
func (p page) fields(of string, lit *ast.CompositeLit, is reflect.Value) string {
	if slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool { _, named := e.(*ast.KeyValueExpr); return !named }) {
		return ""
	}
	for f, value := range is.Fields() {
		e := field(lit, f.Name)
		what := ""
		switch v := value.Interface().(type) {
		case guards.Limit:
			what = p.limit(of, e, v)
		case guards.Tiers:
			what = p.tiers(of, e, v)
		case []guards.Activity:
			what = p.list("", e, value)
		case []guards.Subject:
			what = p.list(of+" ", e, value)
		default:
			if text, ok := p.plain(e, value); ok && text != fmt.Sprint(v) {
				what = fmt.Sprintf("%s has another %s there", of, f.Name)
			}
		}
		if what != "" {
			return what
		}
	}
	return ""
}

// limit compares a limit, whatever the form of its text.
func (p page) limit(of string, e ast.Expr, is guards.Limit) string {
	if call, ok := p.resolve(e).(*ast.CallExpr); ok && len(call.Args) == 1 && isLimit(call.Fun) {
		e = call.Args[0] // of a conversion to guards.Limit
	}
	text, ok := p.text(e)
	there := guards.Limit(text)
	if !ok && e != nil || there.String() == is.String() {
		return ""
	}
	return fmt.Sprintf("%s has the limit %s there and %s here", of, cmp.Or(there.String(), "unlimited"), cmp.Or(is.String(), "unlimited"))
}

// tiers compares the limits of tiers.
func (p page) tiers(of string, e ast.Expr, is guards.Tiers) string {
	var names []string
	if e != nil {
		lit, ok := p.resolve(e).(*ast.CompositeLit)
		if !ok {
			return ""
		}
		for _, e := range lit.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return ""
			}
			name, ok := p.text(pair.Key)
			if !ok {
				return ""
			}
			names = append(names, name)
			here, ok := is[name]
			if !ok {
				return fmt.Sprintf("%s has the tier %s only there", of, name)
			}
			if what := p.limit(of+", tier "+name+",", pair.Value, here); what != "" {
				return what
			}
		}
	}
	for name := range is {
		if !slices.Contains(names, name) {
			return fmt.Sprintf("%s has the tier %s only here", of, name)
		}
	}
	return ""
}

// plain returns a text, a number or a boolean as fmt prints it, and whether it is known.
func (p page) plain(e ast.Expr, like reflect.Value) (string, bool) {
	if e == nil {
		return fmt.Sprint(reflect.Zero(like.Type()).Interface()), true
	}
	switch v := p.resolve(e).(type) {
	case *ast.Ident:
		return v.Name, v.Name == "true" || v.Name == "false"
	case *ast.BasicLit:
		if v.Kind == token.INT {
			n, err := strconv.ParseInt(v.Value, 0, 64)
			return strconv.FormatInt(n, 10), err == nil
		}
	}
	return p.text(e)
}

// text returns a literal text, or one of several parts, and whether it is known.
func (p page) text(e ast.Expr) (string, bool) {
	switch v := p.resolve(e).(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(v.Value)
		return text, err == nil && v.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok1 := p.text(v.X)
		right, ok2 := p.text(v.Y)
		return left + right, ok1 && ok2 && v.Op == token.ADD
	case *ast.ParenExpr:
		return p.text(v.X)
	}
	return "", false
}
