package rules_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

func TestEachFunctionFolderIsInTheTemplate(t *testing.T) {
	var want []string
	for _, folder := range folders(t) {
		want = append(want, scaffold.LogicalID(folder)+"Function")
	}
	slices.Sort(want)
	testkit.Same(t, "functions in template.yaml, one for each folder under functions/", want, slices.Sorted(maps.Keys(resources(t, "AWS::Serverless::Function"))))
}

// The tests build for the machine they run on. Everything else must be as in the binary that is deployed.
func TestLambdatestBuildsWithTheFlagsOfAProject(t *testing.T) {
	makes := regexp.MustCompile(`(?s)\ncompile = (\w+=\d) .*? go build (.*?) -o `).FindStringSubmatch(read(t, "project.mk"))
	if makes == nil {
		t.Fatal("this test no longer finds compile = ... in project.mk")
	}
	want := strings.Join(strings.Fields(strings.NewReplacer("\\\n", "", `"`, "").Replace(makes[2])), " ")
	if got := strings.Join(lambdatest.Flags, " "); got != want {
		t.Errorf("internal/testkit/lambdatest builds with %s, want %s as in project.mk", got, want)
	}
	if !strings.Contains(read(t, "internal/testkit/lambdatest/build.go"), `"`+makes[1]+`"`) {
		t.Errorf("internal/testkit/lambdatest builds without %s", makes[1])
	}
}

func TestFunctionsAcceptTheirSampleEvents(t *testing.T) {
	handlers := map[string]interface {
		Invoke(context.Context, []byte) ([]byte, error)
	}{}
	for _, g := range cricket.All {
		handlers[g.Name] = &guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}}
	}
	jobs := &guard.Handler{Guard: cricket.Jobs, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}}
	handlers["delayed-jobs"] = &delayed.Worker{Guard: jobs, Delayed: anyQueue{}, Ready: anyQueue{}}
	// People try the sample events first, so cleanup's sample must not delete
	// anything.
	if event := read(t, "functions/cleanup/event.json"); !strings.Contains(event, `"dryRun": true`) {
		t.Errorf("functions/cleanup/event.json is %s, want a dry run", event)
	}
	for _, folder := range folders(t) {
		h, ok := handlers[folder]
		if folder == "cleanup" {
			continue // package clients runs it
		}
		if !ok {
			t.Errorf("functions/%s is neither cleanup, nor delayed-jobs, nor a guard of internal/limits", folder)
			continue
		}
		name := path.Join("functions", folder, "event.json")
		answer, err := h.Invoke(t.Context(), []byte(read(t, name)))
		if err != nil || bytes.Contains(answer, []byte("itemIdentifier")) { // names a message that failed
			t.Errorf("%s: %s %v", name, answer, err)
		}
	}
}

// anyQueue accepts every job and drops it.
type anyQueue struct{}

func (anyQueue) Send(context.Context, guard.Job, time.Duration) error { return nil }

// folders returns the names of the folders under functions/, one for each function.
func folders(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, e := range testkit.Must(os.ReadDir("functions"))(t) {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestGeneratedFilesFollowFromTheGuards(t *testing.T) {
	for _, c := range testkit.Must(scaffold.Stale(os.DirFS("."), cricket.All, true))(t) {
		t.Errorf("%s is stale: run go run ./cmd/guards generate (-want +got):\n%s", c.File, cmp.Diff(c.After, c.Before))
	}
}

// A file that is missing or has lost its markers would never be stale.
func TestEachGeneratedFileOfThisProjectIsGenerated(t *testing.T) {
	one := limits.Guard{Name: "one-more-guard", Message: "m", Activities: []limits.Activity{{Name: "do_one_more", Limit: policy.Must("5/1m")}}}
	var got []string
	for _, c := range testkit.Must(scaffold.Stale(os.DirFS("."), append(slices.Clone(cricket.All), one), true))(t) {
		got = append(got, c.File)
	}
	want := []string{
		"activities/activities.go", "activities/activities.json", "activities/activities.py", "activities/activities.ts",
		"docs/limits.md", "functions/one-more-guard/event.json", "functions/one-more-guard/main.go", "template.yaml",
	}
	testkit.Same(t, "files that follow from one more guard", want, slices.Sorted(slices.Values(got)))
}

// One text makes these pieces of all guards. So this test repeats what each piece must be.
func TestEachGuardCanBeCalled(t *testing.T) {
	var arns []string
	for _, g := range cricket.All {
		id := scaffold.LogicalID(g.Name)
		permission := func(action, by string) string {
			return `{"Condition":"OpensUrls","Properties":{"Action":"` + action + `","FunctionName":"` + id + `Function",` +
				by + `},"Type":"AWS::Lambda::Permission"}`
		}
		environment := "null" // of its own; the other variables are in Globals
		if g.DelayedQueue {
			environment = `{"Variables":{"DELAYED_QUEUE_URL":"DelayedQueue"}}`
		}
		for path, want := range map[string]string{
			"Resources." + id + "Url": `{"Condition":"OpensUrls","Properties":{"AuthType":"AWS_IAM","TargetFunctionArn":"` + id +
				`Function"},"Type":"AWS::Lambda::Url"}`,
			"Resources." + id + "UrlPermission":                   permission("lambda:InvokeFunctionUrl", `"FunctionUrlAuthType":"AWS_IAM","Principal":"UrlPrincipal"`),
			"Resources." + id + "UrlInvokePermission":             permission("lambda:InvokeFunction", `"InvokedViaFunctionUrl":true,"Principal":"UrlPrincipal"`),
			"Resources." + id + "Function.Metadata.BuildMethod":   "makefile",
			"Resources." + id + "Function.Properties.Timeout":     "null",
			"Resources." + id + "Function.Properties.Environment": environment,
			"Outputs." + id + "Arn":                               `{"Value":"` + id + `Function.Arn"}`,
		} {
			if got := show(at(whole(t), path)); got != want {
				t.Errorf("%s in template.yaml is %s, want %s", path, got, want)
			}
		}
		arns = append(arns, `"`+id+`Function.Arn"`)
	}
	list := "[" + strings.Join(arns, ",") + "]"
	want := `[{"Action":"lambda:InvokeFunction","Effect":"Allow","Resource":` + list + `},["OpensUrls",{"Action":"lambda:InvokeFunctionUrl",` +
		`"Condition":{"StringEquals":{"lambda:FunctionUrlAuthType":"AWS_IAM"}},"Effect":"Allow","Resource":` + list + `},"AWS::NoValue"]]`
	if got := show(at(whole(t), "Resources.InvokePolicy.Properties.PolicyDocument.Statement")); got != want {
		t.Errorf("InvokePolicy allows %s, want %s", got, want)
	}
}
