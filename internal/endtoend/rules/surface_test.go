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

	"github.com/cric-talk/guards/internal/testkit"
)

// surface is everything that a project of one's own can use, besides package client: each function, and each type with its
// fields and methods. A new name is a promise for good, so it has to be worth it.
var surface = []string{
	"const guards.Blocked guards.Reason",
	"const guards.Bypassed guards.Reason",
	"const guards.Check guards.Op",
	"const guards.Delayed guards.Reason",
	"const guards.Duplicate guards.Reason",
	"const guards.Expired guards.Reason",
	"const guards.Limited guards.Reason",
	"const guards.OK guards.Reason",
	"const guards.Release guards.Op",
	"const guards.Renew guards.Op",
	"const guards.Reset guards.Op",
	"const guards.Shadow guards.Reason",
	"const guards.Status guards.Op",
	"const guards.Unavailable guards.Reason",
	"const guards.Unlimited guards.Reason",
	"guards.Activity: Group Hold Label Limit Name Subjects Tiers Unlimited",
	"guards.Decision: Activity ActivityCount Allowed At Crossed Display Enqueued Granted HeldTime HeldUntil Limit LimitedBy Limits Locked MarshalJSON " +
		"Message Op ReadyAt ReadyTime Reason Remaining RequestID ResetAt ResetTime RetryAfter UserID Version WaitTime WindowKey",
	"guards.Figures: ActivityCount Crossed Limit Locked Name Remaining ResetAt WaitTime",
	"guards.Guard: Activities BlockedMessage DelayedQueue Description MemorySize Message Name",
	"guards.Limit: String",
	"guards.Number(n int64) guards.Numbers",
	"guards.Numbers: MarshalJSON UnmarshalJSON",
	"guards.Op:",
	"guards.Reason:",
	"guards.Request: Activity At Clear Count Job Limit Op Partial ReadyAt RequestID Roles Subjects Tier UserID",
	"guards.Subject: Limit Name Optional Tiers",
	"guards.Tiers:",
	"guards.Validate(all []guards.Guard) error",
	"var guards.ErrUnavailable error",
	"var guards.ErrValidation error",
	"agent.Main(all []guards.Guard)",
	"command.Main(all []guards.Guard)",
	"function.Start(all []guards.Guard, name string)",
	"function.StartCleanup(all []guards.Guard)",
	"jobs.Start(all []guards.Guard, name string)",
	"jobs.StartDelayedJobs(all []guards.Guard)",
	"guardstest.Guards: Allow AllowWith Calls Client Outage Refuse",
	"guardstest.New() *guardstest.Guards",
	"limiter.InMemory(page []guards.Guard, now func() time.Time) (*limiter.Limiter, error)",
	"limiter.Limiter: Clock Close Decide Guards Window",
	"limiter.New(ctx context.Context, page []guards.Guard, o limiter.Options) (*limiter.Limiter, error)",
	"limiter.Options: BypassRoles Config DecisionTimeout Log Metrics MetricsNamespace Mode OnOutage Output Table",
}

func TestThePublicSurface(t *testing.T) {
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", exportData(t))
	var got []string
	for _, folder := range []string{"", "agent", "command", "function", "function/jobs", "guardstest", "limiter"} {
		names := exported(testkit.Must(compiled.Import(strings.TrimSuffix(module+folder, "/")))(t))
		slices.Sort(names)
		got = append(got, slices.Compact(names)...)
	}
	testkit.Same(t, "exported names", surface, got)
}

// exportData returns a function that opens what the compiler knows of a package.
func exportData(t *testing.T) importer.Lookup {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		".", "./agent", "./command", "./function/...", "./guardstest", "./limiter")
	files := map[string]string{}
	for line := range strings.Lines(string(testkit.Must(list.Output())(t))) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// exported returns the exported functions and types of a package, and the types of internal packages with methods that their
// fields have.
func exported(p *types.Package) (names []string) {
	short := func(other *types.Package) string { return other.Name() }
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !ast.IsExported(name) {
			continue
		}
		if _, isType := object.(*types.TypeName); !isType {
			names = append(names, strings.TrimPrefix(types.ObjectString(object, short), "func "))
			continue
		}
		names = append(names, p.Name()+"."+name+members(object.Type()))
		if fields, ok := object.Type().Underlying().(*types.Struct); ok {
			for f := range fields.Fields() {
				if t, ok := f.Type().(*types.Named); ok && t.NumMethods() > 0 && strings.HasPrefix(t.Obj().Pkg().Path(), module+"internal/") {
					names = append(names, types.TypeString(t, short)+members(t))
				}
			}
		}
	}
	return names
}

// members returns the names of a type's exported fields and methods after a colon.
func members(t types.Type) string {
	var names []string
	if fields, ok := t.Underlying().(*types.Struct); ok {
		for f := range fields.Fields() {
			if f.Exported() {
				names = append(names, f.Name())
			}
		}
	}
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if m.Obj().Exported() {
			names = append(names, m.Obj().Name())
		}
	}
	slices.Sort(names)
	return strings.TrimSpace(": " + strings.Join(names, " "))
}
