package command

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Commands share code only through files that belong to no command. Only
// commands.go names all commands.
func TestNoCommandUsesAnotherCommandsFile(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	parsed := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if parsed[name], err = parser.ParseFile(files, name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, problem := range crossings(files, parsed) {
		t.Error(problem)
	}
}

// The rule itself is tested on a package that breaks it in three ways.
func TestCommandsThatUseEachOtherAreFound(t *testing.T) {
	files := token.NewFileSet()
	parsed := map[string]*ast.File{}
	for name, code := range map[string]string{
		"list.go":        "type listCommand struct{}; func (*listCommand) Run() { shared(); rows() }",
		"list_rows.go":   "func rows() {}",
		"limits_show.go": "type showCommand struct{}; func (*showCommand) Run() { rows(); widths() }; func widths() {}",
		"shared.go":      "func shared() { widths() }",
		"commands.go":    "type commands struct { list listCommand; show showCommand }",
		"listing.go":     "func listing() {}",
	} {
		file, err := parser.ParseFile(files, name, "package main; "+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = file
	}
	want := []string{
		"limits_show.go uses rows, which belongs to the command in list.go",
		"shared.go uses widths, which belongs to the command in limits_show.go",
	}
	if got := crossings(files, parsed); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// crossings returns each use of a command's files by other files. Files is the
// package by file name.
func crossings(set *token.FileSet, files map[string]*ast.File) (problems []string) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	// Imports are not loaded, because only the package's own names matter.
	config := types.Config{Error: func(error) {}}
	all := make([]*ast.File, 0, len(files))
	var commands []string
	for name, file := range files {
		all = append(all, file)
		if hasCommand(file) {
			commands = append(commands, strings.TrimSuffix(filepath.Base(name), ".go"))
		}
	}
	_, _ = config.Check("main", set, all, info)
	for use, object := range info.Uses {
		if !object.Pos().IsValid() || object.Parent() != nil && object.Parent() != object.Pkg().Scope() {
			continue
		}
		from, to := fileAt(set, use.Pos()), fileAt(set, object.Pos())
		owner := commandOf(to, commands)
		if owner == "" || from == "commands" || owner == commandOf(from, commands) {
			continue
		}
		problem := from + ".go uses " + use.Name + ", which belongs to the command in " + owner + ".go"
		if !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	slices.Sort(problems)
	return problems
}

// hasCommand reports whether a file has a command: a method Run of a type whose
// name ends in Command.
func hasCommand(file *ast.File) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "Run" || f.Recv == nil {
			return false
		}
		of := f.Recv.List[0].Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		name, ok := of.(*ast.Ident)
		return ok && strings.HasSuffix(name.Name, "Command")
	})
}

// commandOf returns the command to which a file belongs, by its name: list and
// list_rows belong to list. It returns an empty text for a shared file.
func commandOf(file string, commands []string) string {
	for _, command := range commands {
		if file == command || strings.HasPrefix(file, command+"_") {
			return command
		}
	}
	return ""
}

// fileAt returns the name of the file at a position, without .go.
func fileAt(set *token.FileSet, at token.Pos) string {
	return strings.TrimSuffix(filepath.Base(set.Position(at).Filename), ".go")
}
