package rules_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

func TestGeneratedFilesFollowFromTheGuards(t *testing.T) {
	stale, err := scaffold.Stale(os.DirFS("."), cricket.All, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range stale {
		t.Errorf("%s is stale: run go run ./cmd/guards generate (-want +got):\n%s", c.File, cmp.Diff(c.After, c.Before))
	}
}

// A file that is missing or has lost its markers would never be stale.
func TestEachGeneratedFileOfThisProjectIsGenerated(t *testing.T) {
	one := limits.Guard{Name: "one-more-guard", Message: "m", Activities: []limits.Activity{{Name: "do_one_more", Limit: policy.Must("5/1m")}}}
	stale, err := scaffold.Stale(os.DirFS("."), append(slices.Clone(cricket.All), one), true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range stale {
		got = append(got, c.File)
	}
	want := []string{
		"activities/activities.go", "activities/activities.json", "activities/activities.py", "activities/activities.ts",
		"docs/limits.md", "functions/one-more-guard/event.json", "functions/one-more-guard/main.go", "template.yaml",
	}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("files that follow from one more guard (-want +got):\n%s", diff)
	}
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
