package rules_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/strictjson"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// allowedActions lists all that the role of a function that is no guard may do, with the resource of the template.
var allowedActions = map[string][]string{
	"delayed-jobs": slices.Concat(on("Table", "dynamodb:UpdateItem", "dynamodb:GetItem"), []string{"no settings"},
		on("DelayedQueue", "sqs:SendMessage"), on("ReadyQueue", "sqs:SendMessage")),
	// GetItem and UpdateItem remove the grants of an erased user.
	"cleanup": on("Table", "dynamodb:Scan", "dynamodb:Query", "dynamodb:PartiQLDelete", "dynamodb:GetItem", "dynamodb:UpdateItem"),
}

// keepsSettings is a statement that no condition of another one can lift: who decides writes no live settings, whose key is
// " config". The emulators ignore the condition.
const keepsSettings = `{"Action":["dynamodb:UpdateItem","dynamodb:DeleteItem"],"Condition":{"ForAnyValue:StringEquals":{"dynamodb:LeadingKeys":[" config"]}},"Effect":"Deny","Resource":"Table.Arn"}`

// An app that decides itself may do what a guard may, and nothing else.
func TestTheLimitersPolicyWritesNoSettings(t *testing.T) {
	const want = `[{"Action":["dynamodb:UpdateItem","dynamodb:GetItem","dynamodb:DeleteItem"],"Effect":"Allow","Resource":"Table.Arn"},` + keepsSettings + `]`
	if got := show(at(whole(t), "Resources.LimiterPolicy.Properties.PolicyDocument.Statement")); got != want {
		t.Errorf("LimiterPolicy allows %s, want %s", got, want)
	}
	if !strings.Contains(keepsSettings, `"`+dynamolive.User+`"`) {
		t.Errorf("the key of the settings is %q", dynamolive.User)
	}
}

// guardActions lists all that the role of a guard may do. A reservoir has no reset, so a guard with reservoirs only deletes
// nothing.
func guardActions(g limits.Guard) []string {
	actions := append(on("Table", "dynamodb:UpdateItem", "dynamodb:GetItem"), "no settings")
	if slices.ContainsFunc(g.Activities, func(a limits.Activity) bool { return !a.Unlimited && !a.Limit.Queues() }) {
		actions = append(actions, on("Table", "dynamodb:DeleteItem")...)
	}
	if g.DelayedQueue {
		actions = append(actions, on("DelayedQueue", "sqs:SendMessage")...)
	}
	return actions
}

// on returns each action together with its resource.
func on(resource string, actions ...string) (list []string) {
	for _, action := range actions {
		list = append(list, action+" on "+resource+".Arn")
	}
	return list
}

func TestEachRoleAllowsExactlyTheListedActions(t *testing.T) {
	for _, folder := range folders(t) {
		want, listed := allowedActions[folder]
		if g, ok := cricket.All.Named(folder); ok {
			want, listed = guardActions(g), true
		}
		if !listed {
			t.Errorf("functions/%s is missing from allowedActions in this test", folder)
		}
		var got []string
		for _, policy := range list(at(whole(t), "Resources."+scaffold.LogicalID(folder)+"Function.Properties.Policies")) {
			statements := list(at(policy, "Statement"))
			if len(statements) == 0 {
				t.Errorf("functions/%s: a policy is not an inline statement", folder)
			}
			for _, s := range statements {
				if show(s) == keepsSettings {
					got = append(got, "no settings")
					continue
				}
				resource, ok := at(s, "Resource").(string)
				if at(s, "Effect") != "Allow" || !ok || !strings.HasSuffix(resource, ".Arn") {
					t.Errorf("functions/%s: %s, want Allow on one !GetAtt X.Arn", folder, show(s))
				}
				for _, action := range list(at(s, "Action")) {
					got = append(got, on(strings.TrimSuffix(resource, ".Arn"), show(action))...)
				}
			}
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("functions/%s: IAM actions in template.yaml. If you mean them, change allowedActions in this test (-want +got):\n%s", folder, diff)
		}
	}
}

// Lambda stops a function after about 16 rounds if it sends to the queue that invokes it,
// unless the function may do that. No other function may.
func TestOnlyAFunctionThatSendsToItsOwnQueueMayLoop(t *testing.T) {
	for id, r := range at(whole(t), "Resources").(map[string]any) {
		if at(r, "Type") != "AWS::Serverless::Function" {
			continue
		}
		want := "null"
		for _, policy := range list(at(r, "Properties.Policies")) {
			for _, s := range list(at(policy, "Statement")) {
				for _, e := range events(r) {
					if at(e, "Type") == "SQS" && slices.Contains(list(at(s, "Action")), any("sqs:SendMessage")) && at(s, "Resource") == at(e, "Properties.Queue") {
						want = "Allow"
					}
				}
			}
		}
		if got := show(at(r, "Properties.RecursiveLoop")); got != want {
			t.Errorf("%s: RecursiveLoop is %s, want %s", id, got, want)
		}
	}
}

// events returns what invokes a function.
func events(function any) map[string]any {
	all, _ := at(function, "Properties.Events").(map[string]any)
	return all
}

func TestTemplateAndMakefileUseTheSameArchitecture(t *testing.T) {
	goarch := regexp.MustCompile(`(?m)^GOARCH_LAMBDA \?= (\w+)$`).FindStringSubmatch(read(t, "project.mk"))
	if goarch == nil {
		t.Fatal("project.mk has no line GOARCH_LAMBDA ?= ...")
	}
	want := map[string]string{"arm64": `["arm64"]`, "amd64": `["x86_64"]`}[goarch[1]]
	if got := show(at(whole(t), "Globals.Function.Architectures")); got != want {
		t.Errorf("Architectures in template.yaml are %s, want %s because GOARCH_LAMBDA is %s", got, want, goarch[1])
	}
	for _, folder := range folders(t) {
		if own := at(whole(t), "Resources."+scaffold.LogicalID(folder)+"Function.Properties.Architectures"); own != nil {
			t.Errorf("functions/%s has its own Architectures; make builds every function for GOARCH_LAMBDA", folder)
		}
	}
}

var wholeTemplate map[string]any // nil: not read yet

// whole returns all of template.yaml. A value with !Ref, !Sub or !GetAtt reads as the string after the tag, and one with !If
// as a list.
func whole(t *testing.T) map[string]any {
	t.Helper()
	if wholeTemplate == nil {
		if err := yaml.Unmarshal([]byte(read(t, "template.yaml")), &wholeTemplate); err != nil {
			t.Fatal("template.yaml: ", err)
		}
	}
	return wholeTemplate
}

// at returns the value at a path such as Properties.Timeout, or nil.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

// list returns the elements of a list, and nothing of another value.
func list(v any) []any {
	all, _ := v.([]any)
	return all
}

// show returns a value on one line. A string stands for itself. In braces, the parser takes !Ref AWS::NoValue for an object.
func show(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := strictjson.Marshal(v, strictjson.Sorted)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(b), `{"AWS":":NoValue"}`, `"AWS::NoValue"`)
}
