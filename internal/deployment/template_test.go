package deployment_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/limits"
)

// A value is one of the transformed template: an object, a list, a string, a
// number or a bool. {"Ref": "X"} is "!Ref X", and {"Fn::GetAtt": ["X", "Arn"]}
// "!GetAtt X.Arn".
type value = any

type object = map[string]value

// transform is the CloudFormation that SAM makes of template.yaml.
func transform(t *testing.T) []byte {
	t.Helper()
	if os.Getenv("TEMPLATE_TOOLS") == "" {
		t.Skip("make template runs it, with SAM and checkov")
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

// at follows a path such as Properties.Target.Input; nil where there is none.
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

// show is a value as the rules name it: on one line.
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

// rules are what must stand in the transformed template: most of it the
// emulator takes no notice of.
var rules = []struct{ resource, path, want string }{
	{"Table", "DeletionPolicy", "Retain"},
	{"Table", "UpdateReplacePolicy", "Retain"},
	{"Table", "Properties.BillingMode", "PAY_PER_REQUEST"},
	{"Table", "Properties.DeletionProtectionEnabled", "!Ref DeletionProtection"},
	{"Table", "Properties.TimeToLiveSpecification", `{"AttributeName":"expiresAt","Enabled":true}`},
	{"Table", "Properties.SSESpecification.SSEEnabled", "true"},
	{"Table", "Properties.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled", "!Ref PointInTimeRecovery"},
	{"Table", "Properties.OnDemandThroughput", `{"Fn::If":["Caps",{` +
		`"MaxReadRequestUnits":{"Fn::If":["CapsReads","!Ref MaxReadUnitsPerSecond","!Ref AWS::NoValue"]},` +
		`"MaxWriteRequestUnits":{"Fn::If":["CapsWrites","!Ref MaxWriteUnitsPerSecond","!Ref AWS::NoValue"]}},"!Ref AWS::NoValue"]}`},
	{"Table", "Properties.GlobalSecondaryIndexes", "null"},
	{"LogGroup", "Properties.RetentionInDays", "!Ref LogRetentionDays"},
	{"CleanupFunction", "Properties.ReservedConcurrentExecutions", "1"},
	{"CleanupFunctionEventInvokeConfig", "Properties.DestinationConfig.OnFailure.Destination", "!GetAtt CleanupDeadLetterQueue.Arn"},
	{"CleanupFunctionSchedule", "Properties.ScheduleExpression", "!Ref CleanupSchedule"},
	{"CleanupFunctionSchedule", "Properties.Name", `{"Fn::Sub":"${NamePrefix}cleanup"}`},
	{"CleanupFunctionSchedule", "Properties.Target.Input", "{}"},
	{"CleanupFunctionSchedule", "Properties.Target.RetryPolicy", `{"MaximumEventAgeInSeconds":240,"MaximumRetryAttempts":3}`},
	{"CleanupFunctionSchedule", "Properties.Target.DeadLetterConfig.Arn", "!GetAtt CleanupDeadLetterQueue.Arn"},
	{"CleanupAlarm", "Properties.TreatMissingData", "breaching"},
	{"CleanupErrorsAlarm", "Properties.DatapointsToAlarm", "1"}, // there is one run in five minutes
	{"InvokePolicy", "Properties.PolicyDocument.Statement", invokeStatements()},
}

func invokeStatements() string {
	var arns []string
	for _, g := range limits.All {
		arns = append(arns, `"!GetAtt `+logicalID(g.Name)+`Function.Arn"`)
	}
	list := "[" + strings.Join(arns, ",") + "]"
	return `[{"Action":"lambda:InvokeFunction","Effect":"Allow","Resource":` + list + `},{"Fn::If":["OpensUrls",` +
		`{"Action":"lambda:InvokeFunctionUrl","Condition":{"StringEquals":{"lambda:FunctionUrlAuthType":"AWS_IAM"}},"Effect":"Allow","Resource":` +
		list + `},"!Ref AWS::NoValue"]}]`
}

// logicalID is posts-guard's PostsGuard.
func logicalID(name string) string {
	return regexp.MustCompile(`(^|-)[a-z]`).ReplaceAllStringFunc(name, func(s string) string {
		return strings.ToUpper(strings.TrimPrefix(s, "-"))
	})
}

// safe is what parameters are where nobody says otherwise.
var safe = map[string]string{
	"PointInTimeRecovery": "true", "DeletionProtection": "true", "UrlPrincipal": "", "Mode": "enforce", "OnOutage": "allow",
	"MaxWriteUnitsPerSecond": "0", "GuardConcurrency": "0", "LogRetentionDays": "30", "AlarmTopicArn": "",
}

// violations is what is wrong with a transformed template.
func violations(template object) (all []string) {
	wrong := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	resources := template["Resources"].(object)
	for _, r := range rules {
		if got := show(at(resources[r.resource], r.path)); got != r.want {
			wrong("%s: %s is %s, want %s", r.resource, r.path, got, r.want)
		}
	}
	for name, want := range safe {
		if got := show(at(template, "Parameters."+name+".Default")); got != want {
			wrong("parameter %s is %q by default, want %q", name, got, want)
		}
	}
	for name, p := range template["Parameters"].(object) {
		p := p.(object)
		if len(show(p["Description"])) < 20 {
			wrong("parameter %s has no description", name)
		}
		if p["AllowedPattern"] == nil && p["AllowedValues"] == nil && p["MinValue"] == nil {
			wrong("parameter %s takes anything", name)
		}
	}
	for id, r := range resources {
		r := r.(object)
		switch r["Type"] {
		case "AWS::Lambda::Function":
			functionViolations(id, resources, wrong)
		case "AWS::IAM::Role":
			arns, _ := at(r, "Properties.ManagedPolicyArns").([]any)
			for _, arn := range arns {
				if !managed[id+" "+show(arn)] && !managed[show(arn)] {
					wrong("%s has %s", id, show(arn))
				}
			}
		case "AWS::CloudWatch::Alarm":
			for _, path := range []string{"AlarmActions", "OKActions"} {
				if got := show(at(r, "Properties."+path)); got != `[{"Fn::If":["SendsAlarms","!Ref AlarmTopicArn","!Ref AWS::NoValue"]}]` {
					wrong("%s: %s are %s", id, path, got)
				}
			}
		case "AWS::Lambda::Url":
			if r["Condition"] != "OpensUrls" || at(r, "Properties.AuthType") != "AWS_IAM" {
				wrong("%s opens %s on condition %v", id, show(r["Properties"]), r["Condition"])
			}
		case "AWS::Lambda::Permission":
			if r["Condition"] != "OpensUrls" || at(r, "Properties.Principal") != "!Ref UrlPrincipal" {
				wrong("%s permits %s on condition %v", id, show(r["Properties"]), r["Condition"])
			}
		}
		for _, s := range statements(r) {
			for _, part := range []string{"Action", "Resource", "Principal", "NotAction", "NotResource"} {
				if strings.Contains(show(s[part]), "*") {
					wrong("%s: %s is %s", id, part, show(s[part]))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// managed are AWS's own policies that roles may have, as SAM gives them.
var managed = map[string]bool{
	"arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole":                            true,
	"DelayedJobsFunctionRole arn:aws:iam::aws:policy/service-role/AWSLambdaSQSQueueExecutionRole": true,
}

func functionViolations(id string, resources object, wrong func(string, ...any)) {
	p := resources[id].(object)["Properties"]
	concurrency := `{"Fn::If":["ReservesConcurrency","!Ref GuardConcurrency","!Ref AWS::NoValue"]}`
	if id == "CleanupFunction" {
		concurrency = "1"
	}
	for path, want := range map[string]string{
		"Runtime": "provided.al2023", "Architectures": `["arm64"]`, "ReservedConcurrentExecutions": concurrency,
		"LoggingConfig": `{"ApplicationLogLevel":"INFO","LogFormat":"JSON","LogGroup":"!Ref LogGroup"}`,
	} {
		if got := show(at(p, path)); got != want {
			wrong("%s: %s is %s, want %s", id, path, got, want)
		}
	}
	if got := show(at(resources[id+"EventInvokeConfig"], "Properties.MaximumRetryAttempts")); got != "0" {
		wrong("%s is tried again %s times, want 0", id, got)
	}
	name := strings.TrimSuffix(id, "Function")
	for _, metric := range []string{"Errors", "Throttles"} {
		alarm := resources[name+metric+"Alarm"]
		dimensions := `[{"Name":"FunctionName","Value":"!Ref ` + id + `"}]`
		if show(at(alarm, "Properties.MetricName")) != metric || show(at(alarm, "Properties.Dimensions")) != dimensions {
			wrong("%s has no alarm on %s: %s", id, metric, show(alarm))
		}
	}
	if !strings.HasSuffix(name, "Guard") {
		return
	}
	for suffix, action := range map[string]string{"UrlPermission": "lambda:InvokeFunctionUrl", "UrlInvokePermission": "lambda:InvokeFunction"} {
		permission := resources[name+suffix]
		if show(at(permission, "Properties.Action")) != action || show(at(permission, "Properties.FunctionName")) != "!Ref "+id {
			wrong("%s has no %s for its URL: %s", id, action, show(permission))
		}
	}
}

// statements are those of all policies of a resource, whoever they are of.
func statements(v value) (all []object) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			all = append(all, statements(e)...)
		}
	case object:
		if _, ok := v["Effect"].(string); ok {
			all = append(all, v)
		}
		for _, e := range v {
			all = append(all, statements(e)...)
		}
	}
	return all
}

func TestTemplateAsCloudFormationGetsIt(t *testing.T) {
	for _, v := range violations(simple(parse(t, transform(t))).(object)) {
		t.Error(v)
	}
}

// Each fault, planted into the transformed template, is found.
func TestTemplateFaultsAreFound(t *testing.T) {
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
	} {
		template := simple(parse(t, text)).(object)
		parent, name := template["Resources"], fault.path
		if i := strings.LastIndex(fault.path, "."); i > 0 {
			parent, name = at(parent, fault.path[:i]), fault.path[i+1:]
		}
		parent.(object)[name] = fault.value
		if len(violations(template)) == 0 {
			t.Errorf("%s: %s is not found", fault.path, show(fault.value))
		}
	}
}

// The dashboard is a text in the template: what it asks for must be JSON, and
// all that it is to show must be in it.
func TestTemplateDashboard(t *testing.T) {
	body, ok := at(parse(t, transform(t)), "Resources.Dashboard.Properties.DashboardBody.Fn::Sub").(string)
	if !ok {
		t.Fatal("no dashboard")
	}
	var board struct {
		Widgets []struct {
			Type       string
			Properties struct{ Title string }
		}
	}
	body = regexp.MustCompile(`\$\{[^}]+\}`).ReplaceAllString(body, "x")
	if err := json.Unmarshal([]byte(body), &board); err != nil || len(board.Widgets) < 10 {
		t.Fatalf("%d widgets, %v", len(board.Widgets), err)
	}
	for _, metric := range []string{
		"Allowed", "Refused", "Bypassed", "Shadowed", "Degraded", "NearLimit", "p99", "initDurationMs", "WriteThrottleEvents",
		"ConsumedWriteCapacityUnits", "Scanned", "Deleted", "TrackedUsers", "StaleLeft", "Finished",
	} {
		if !strings.Contains(body, metric) {
			t.Errorf("no %s", metric)
		}
	}
}

// Checkov and cfn-lint find nothing but what a resource gives a reason for, and
// would find a public URL and a wildcard.
func TestTemplateScan(t *testing.T) {
	clean := filepath.Join(t.TempDir(), "transformed.json")
	whole := parse(t, transform(t))
	write(t, clean, whole)
	if found := scan(t, clean); len(found) > 0 {
		t.Errorf("checkov finds %v", found)
	}
	run(t, nil, ".cache/venv/bin/cfn-lint", "--include-checks", "I", "--", clean)
	for _, r := range whole["Resources"].(object) {
		skips, _ := at(r, "Metadata.checkov.skip").([]any)
		for _, skip := range skips {
			if len(show(at(skip, "comment"))) < 10 {
				t.Errorf("%s is skipped without a reason", show(at(skip, "id")))
			}
		}
	}

	faulty := filepath.Join(t.TempDir(), "transformed.json")
	at(whole, "Resources.PostsGuardUrl.Properties").(object)["AuthType"] = "NONE"
	policy := at(whole, "Resources.PostsGuardFunctionRole.Properties.Policies").([]any)[0]
	at(policy, "PolicyDocument.Statement").([]any)[0].(object)["Action"] = "*"
	at(policy, "PolicyDocument.Statement").([]any)[0].(object)["Resource"] = "*"
	write(t, faulty, whole)
	found := scan(t, faulty)
	for id, what := range map[string]string{"CKV_AWS_258": "a public URL", "CKV_AWS_111": "a wildcard"} {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, id+" ") }) {
			t.Errorf("checkov does not find %s (%s): %v", what, id, found)
		}
	}
}

func write(t *testing.T, name string, v value) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// scan is what checkov finds in a file.
func scan(t *testing.T, name string) (found []string) {
	t.Helper()
	stdout, stderr, err := attempt(t, nil, ".cache/scan/bin/checkov", "--framework", "cloudformation", "--file", name,
		"--output", "json", "--compact", "--quiet", "--soft-fail", "--skip-download")
	var out struct {
		Summary struct {
			ResourceCount int `json:"resource_count"`
			ParsingErrors int `json:"parsing_errors"`
		} `json:"summary"`
		Results struct {
			Failed []struct {
				ID       string `json:"check_id"`
				Resource string `json:"resource"`
			} `json:"failed_checks"`
		} `json:"results"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(stdout), &out)
	}
	if err != nil || out.Summary.ResourceCount == 0 || out.Summary.ParsingErrors > 0 {
		t.Fatalf("checkov: %v\n%s%s", err, stdout, stderr)
	}
	for _, f := range out.Results.Failed {
		found = append(found, f.ID+" "+f.Resource)
	}
	return found
}
