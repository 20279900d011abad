package rules_test

import (
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// surface is everything that a project of one's own can use, besides package client. A new line is a promise for good, so it has
// to be worth it. A field or a method is there because an alias reaches it.
var surface = []string{
	"guards: Activity.For",
	"guards: Activity.Label",
	"guards: Activity.Limit",
	"guards: Activity.Name",
	"guards: Activity.Tiers",
	"guards: Activity.Unlimited",
	"guards: Guard.Activities",
	"guards: Guard.Activity",
	"guards: Guard.DelayedQueue",
	"guards: Guard.Description",
	"guards: Guard.MemorySize",
	"guards: Guard.Message",
	"guards: Guard.Name",
	"guards: Guard.Validate",
	"guards: Limit(text string) policy.Policy",
	"guards: type Activity",
	"guards: type Guard",
	"guards: type Tiers",
	"command: Main(all []guards.Guard)",
	"function: Start(all []guards.Guard, name string)",
	"function: StartCleanup(all []guards.Guard)",
	"jobs: Start(all []guards.Guard, name string)",
	"jobs: StartDelayedJobs(all []guards.Guard)",
}

func TestThePublicSurface(t *testing.T) {
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", exportData(t))
	var got []string
	for _, folder := range []string{"", "command", "function", "function/jobs"} {
		p, err := compiled.Import(strings.TrimSuffix(module+folder, "/"))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, exported(p)...)
	}
	if diff := cmp.Diff(surface, got); diff != "" {
		t.Errorf("exported names (-promised +found):\n%s", diff)
	}
}

// exportData returns a function that opens what the compiler knows of a package.
func exportData(t *testing.T) importer.Lookup {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".", "./command", "./function/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// exported returns the exported names of a package, with the fields and the methods of its types.
func exported(p *types.Package) (names []string) {
	short := func(other *types.Package) string { return other.Name() }
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !ast.IsExported(name) {
			continue
		}
		named, isType := object.(*types.TypeName)
		if !isType {
			names = append(names, p.Name()+": "+strings.TrimPrefix(types.ObjectString(object, short), "func "+short(p)+"."))
			continue
		}
		names = append(names, p.Name()+": type "+name)
		if fields, ok := named.Type().Underlying().(*types.Struct); ok {
			for f := range fields.Fields() {
				names = append(names, p.Name()+": "+name+"."+f.Name())
			}
		}
		methods := types.NewMethodSet(types.NewPointer(named.Type()))
		for m := range methods.Methods() {
			names = append(names, p.Name()+": "+name+"."+m.Obj().Name())
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { _, last, _ := strings.Cut(n, "."); return last != "" && !ast.IsExported(last) })
	slices.Sort(names)
	return names
}
