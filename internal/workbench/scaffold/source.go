package scaffold

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// A source is the text of limits.go with what it means.
type source struct {
	text   string
	guards limits.Guards // in the order of All

	files   *token.FileSet
	texts   map[string]string            // constants and variables that hold a text
	values  map[string]*ast.CompositeLit // variables with a composite value
	blocks  map[string]*ast.GenDecl      // the declaration of each variable
	byGuard map[string]string            // a guard's variable, by its name
}

// parse reads limits.go.
func parse(text string) (*source, error) {
	s, err := declarations(limitsFile, text)
	if err != nil {
		return nil, err
	}
	all := s.values["All"]
	if all == nil {
		return nil, fmt.Errorf("%s has no list All", limitsFile)
	}
	for _, e := range all.Elts {
		variable, ok := e.(*ast.Ident)
		if !ok || s.values[variable.Name] == nil {
			return nil, s.unknown(e)
		}
		g, err := s.guard(s.values[variable.Name])
		if err != nil {
			return nil, err
		}
		s.guards = append(s.guards, g)
		s.byGuard[g.Name] = variable.Name
	}
	return s, nil
}

// declarations reads only the constants and variables of a file.
func declarations(name, text string) (*source, error) {
	s := &source{
		text: text, files: token.NewFileSet(), texts: map[string]string{},
		values: map[string]*ast.CompositeLit{}, blocks: map[string]*ast.GenDecl{}, byGuard: map[string]string{},
	}
	file, err := parser.ParseFile(s.files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		if block, ok := d.(*ast.GenDecl); ok {
			s.declare(block)
		}
	}
	return s, nil
}

// declare notes what a block of constants or variables declares.
func (s *source) declare(block *ast.GenDecl) {
	for _, spec := range block.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
			continue
		}
		name := v.Names[0].Name
		s.blocks[name] = block
		switch value := v.Values[0].(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(value.Value); err == nil {
				s.texts[name] = text
			}
		case *ast.CompositeLit:
			s.values[name] = value
		}
	}
}

// unknown returns the error for a part of the file that has another form than
// this program writes.
func (s *source) unknown(n ast.Node) error {
	return fmt.Errorf("%s: this line has a form that guards new can't read; the other guards of the file are examples", s.files.Position(n.Pos()))
}

// fields calls set for each field of a composite value.
func (s *source) fields(v ast.Expr, set func(name string, value ast.Expr) error) error {
	lit, ok := v.(*ast.CompositeLit)
	if !ok {
		return s.unknown(v)
	}
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return s.unknown(e)
		}
		name, ok := pair.Key.(*ast.Ident)
		if !ok {
			return s.unknown(e)
		}
		if err := set(name.Name, pair.Value); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) guard(v ast.Expr) (g limits.Guard, err error) {
	err = s.fields(v, func(name string, value ast.Expr) (err error) {
		switch name {
		case "Name":
			g.Name, err = s.string(value)
		case "Message":
			g.Message, err = s.string(value)
		case "Activities":
			lit, ok := value.(*ast.CompositeLit)
			if !ok {
				return s.unknown(value)
			}
			for _, e := range lit.Elts {
				a, err := s.activity(e)
				if err != nil {
					return err
				}
				g.Activities = append(g.Activities, a)
			}
		default:
			return s.unknown(value)
		}
		return err
	})
	return g, err
}

func (s *source) activity(v ast.Expr) (a limits.Activity, err error) {
	err = s.fields(v, func(name string, value ast.Expr) (err error) {
		switch name {
		case "Name":
			a.Name, err = s.string(value)
		case "Label":
			a.Label, err = s.string(value)
		case "Limit":
			a.Limit, err = s.policy(value)
		case "Tiers":
			a.Tiers, err = s.tiers(value)
		case "Unlimited":
			word, ok := value.(*ast.Ident)
			if !ok {
				return s.unknown(value)
			}
			a.Unlimited = word.Name == "true"
		default:
			return s.unknown(value)
		}
		return err
	})
	return a, err
}

func (s *source) tiers(v ast.Expr) (limits.Tiers, error) {
	lit, ok := v.(*ast.CompositeLit)
	if !ok {
		return nil, s.unknown(v)
	}
	tiers := limits.Tiers{}
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return nil, s.unknown(e)
		}
		name, err := s.string(pair.Key)
		if err != nil {
			return nil, err
		}
		if tiers[name], err = s.policy(pair.Value); err != nil {
			return nil, err
		}
	}
	return tiers, nil
}

// policy reads policy.Must("10/1m").
func (s *source) policy(v ast.Expr) (p policy.Policy, err error) {
	call, ok := v.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return p, s.unknown(v)
	}
	text, err := s.string(call.Args[0])
	if err != nil {
		return p, err
	}
	if p, err = policy.Parse(text); err != nil {
		return p, fmt.Errorf("%s: %w", s.files.Position(v.Pos()), err)
	}
	return p, nil
}

// string reads a text, or the name of a constant of this file.
func (s *source) string(v ast.Expr) (string, error) {
	switch v := v.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(v.Value); err == nil {
			return text, nil
		}
	case *ast.Ident:
		if text, ok := s.texts[v.Name]; ok {
			return text, nil
		}
	}
	return "", s.unknown(v)
}
