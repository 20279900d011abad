package deployment_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTemplateKeepsTheRules(t *testing.T) {
	for _, v := range violations(simple(parse(t, transform(t))).(object)) {
		t.Error(v)
	}
}

// Each row puts one fault into the transformed template.
func TestTemplateRulesFindEachFault(t *testing.T) {
	text := transform(t)
	for _, fault := range []struct {
		path  string
		value value
	}{
		{"Table.DeletionPolicy", "Delete"},
		{"Table.Properties.TimeToLiveSpecification.Enabled", false},
		{"Table.Properties.TimeToLiveSpecification.AttributeName", "createdAt"},
		{"Table.Properties.SSESpecification.SSEEnabled", false},
		{"Table.Properties.PointInTimeRecoverySpecification", nil},
		{"Table.Properties.OnDemandThroughput", nil},
		{"PostsGuardUrl.Properties.AuthType", "NONE"},
		{"PostsGuardUrl.Condition", nil},
		{"PostsGuardUrlPermission.Properties.Principal", "*"},
		{"PostsGuardUrlInvokePermission.Properties.Action", "lambda:InvokeFunctionUrl"},
		{"PostsGuardFunctionRole.Properties.ManagedPolicyArns", []any{"arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess"}},
		{"PostsGuardFunctionRole.Properties.Policies", []any{object{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "!GetAtt Table.Arn"}}},
		{"PostsGuardFunctionRole.Properties.Policies", []any{object{"Effect": "Allow", "Action": "dynamodb:Scan", "Resource": "*"}}},
		{"PostsGuardFunctionEventInvokeConfig.Properties.MaximumRetryAttempts", 2.0},
		{"PostsGuardErrorsAlarm.Properties.AlarmActions", nil},
		{"PostsGuardFunction.Properties.LoggingConfig.LogFormat", "Text"},
		{"InvokePolicy.Properties.PolicyDocument.Statement", []any{}},
		{"CleanupFunction.Properties.ReservedConcurrentExecutions", nil},
		{"DelayedJobsFunction.Properties.ReservedConcurrentExecutions", 5.0},
	} {
		template := simple(parse(t, text)).(object)
		parent, name := template["Resources"], fault.path
		if i := strings.LastIndex(fault.path, "."); i > 0 {
			parent, name = at(parent, fault.path[:i]), fault.path[i+1:]
		}
		parent.(object)[name] = fault.value
		if len(violations(template)) == 0 {
			t.Errorf("the rules don't find that %s is %s", fault.path, show(fault.value))
		}
	}
}

// The dashboard is JSON in a string of the template.
func TestTemplateDashboardShowsEachMetric(t *testing.T) {
	sub, ok := at(parse(t, transform(t)), "Resources.Dashboard.Properties.DashboardBody.Fn::Sub").([]any)
	if !ok {
		t.Fatal("the template has no dashboard")
	}
	body := strings.Replace(sub[0].(string), "${Durations}", at(sub[1], "Durations.Fn::Sub").(string), 1)
	var board struct {
		Widgets []struct {
			Type       string
			Properties struct{ Title string }
		}
	}
	body = regexp.MustCompile(`\$\{[^}]+\}`).ReplaceAllString(body, "x")
	if err := json.Unmarshal([]byte(body), &board); err != nil || len(board.Widgets) < 10 {
		t.Fatalf("the dashboard has %d widgets, %v, want at least 10", len(board.Widgets), err)
	}
	for _, metric := range []string{
		"Allowed", "Refused", "RefusedBy", "Bypassed", "Shadowed", "Expired", "Degraded", "NearLimit", "Crossed80", "Crossed100", "Leased", "Visits", "p99", "instance started", "WriteThrottleEvents",
		"ConsumedWriteCapacityUnits", "Scanned", "Deleted", "TrackedUsers", "StaleLeft", "Finished",
	} {
		if !strings.Contains(body, metric) {
			t.Errorf("the dashboard does not show %s", metric)
		}
	}
}

// A value is any value of the transformed template: an object, a list, a string, a
// number or a bool. {"Ref": "X"} becomes the string "!Ref X", and
// {"Fn::GetAtt": ["X", "Arn"]} becomes "!GetAtt X.Arn".
type value = any

type object = map[string]value

// transform returns the CloudFormation template that SAM generates.
func transform(t *testing.T) []byte {
	t.Helper()
	if os.Getenv("TEMPLATE_TOOLS") == "" {
		t.Skip("make template runs this test, which needs SAM and checkov")
	}
	return []byte(run(t, nil, ".cache/venv/bin/python", "tools/transform.py", "template.yaml"))
}

func parse(t *testing.T, b []byte) (o object) {
	t.Helper()
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// simple returns v with references and attributes as strings, see value.
func simple(v value) value {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = simple(v[i])
		}
	case object:
		if ref, ok := v["Ref"].(string); ok && len(v) == 1 {
			return "!Ref " + ref
		}
		if names, ok := v["Fn::GetAtt"].([]any); ok {
			return fmt.Sprintf("!GetAtt %v.%v", names...)
		}
		for k := range v {
			v[k] = simple(v[k])
		}
	}
	return v
}

// at returns the value at a path such as Properties.Target.Input, or nil.
func at(v value, path string) value {
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

// show returns a value on one line, in the form that the rules use.
func show(v value) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
