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
// to be worth it. A field or a method is there because an alias reaches it. Of policy.Policy, projects are promised String only.
var surface = []string{
	"guards: Activity.For",
	"guards: Activity.Group",
	"guards: Activity.Has",
	"guards: Activity.Hold",
	"guards: Activity.Label",
	"guards: Activity.Limit",
	"guards: Activity.Name",
	"guards: Activity.Part",
	"guards: Activity.Parts",
	"guards: Activity.Subjects",
	"guards: Activity.Tiers",
	"guards: Activity.Unlimited",
	"guards: Activity.With",
	"guards: Guard.Activities",
	"guards: Guard.Activity",
	"guards: Guard.DelayedQueue",
	"guards: Guard.Description",
	"guards: Guard.MemorySize",
	"guards: Guard.Message",
	"guards: Guard.Name",
	"guards: Guard.Validate",
	"guards: Limit(text string) policy.Policy",
	"guards: Subject.For",
	"guards: Subject.Limit",
	"guards: Subject.Name",
	"guards: Subject.Optional",
	"guards: Subject.Tiers",
	"guards: policy.Policy.AtOnce",
	"guards: policy.Policy.Beside",
	"guards: policy.Policy.CheckHold",
	"guards: policy.Policy.Cross",
	"guards: policy.Policy.Due",
	"guards: policy.Policy.Each",
	"guards: policy.Policy.Equal",
	"guards: policy.Policy.Free",
	"guards: policy.Policy.HeldUntil",
	"guards: policy.Policy.Is",
	"guards: policy.Policy.IsPlace",
	"guards: policy.Policy.IsZero",
	"guards: policy.Policy.Item",
	"guards: policy.Policy.Lease",
	"guards: policy.Policy.MarshalText",
	"guards: policy.Policy.Most",
	"guards: policy.Policy.Named",
	"guards: policy.Policy.OptionsOf",
	"guards: policy.Policy.Part",
	"guards: policy.Policy.Prepaid",
	"guards: policy.Policy.Queues",
	"guards: policy.Policy.Quota",
	"guards: policy.Policy.Rates",
	"guards: policy.Policy.Read",
	"guards: policy.Policy.Renew",
	"guards: policy.Policy.Replace",
	"guards: policy.Policy.Skip",
	"guards: policy.Policy.String",
	"guards: policy.Policy.Take",
	"guards: policy.Policy.Undo",
	"guards: policy.Policy.UnmarshalText",
	"guards: policy.Policy.Waiting",
	"guards: type Activity",
	"guards: type Guard",
	"guards: type Subject",
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
				if t, ok := f.Type().(*types.Named); ok && strings.HasPrefix(t.Obj().Pkg().Path(), module+"internal/") {
					names = append(names, methods(p.Name()+": "+short(t.Obj().Pkg())+"."+t.Obj().Name()+".", t)...)
				}
			}
		}
		names = append(names, methods(p.Name()+": "+name+".", named.Type())...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// methods returns the names of a type's exported methods, each after a prefix.
func methods(prefix string, t types.Type) (names []string) {
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if m.Obj().Exported() {
			names = append(names, prefix+m.Obj().Name())
		}
	}
	return names
}
