package deployment_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/workbench/scaffold"
	"github.com/cric-talk/guards/limits"
)

// rules lists values that the transformed template must have. The emulator ignores
// most of them, so the tests of the deployed stack can't check them.
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
	{"CleanupFunctionEventInvokeConfig", "Properties.MaximumEventAgeInSeconds", "60"}, // runs of a short schedule don't pile up
	{"CleanupFunctionSchedule", "Properties.ScheduleExpression", "!Ref CleanupSchedule"},
	{"CleanupFunctionSchedule", "Properties.Name", `{"Fn::Sub":"${NamePrefix}cleanup"}`},
	{"CleanupFunctionSchedule", "Properties.Target.Input", "{}"},
	{"CleanupFunctionSchedule", "Properties.Target.RetryPolicy", `{"MaximumEventAgeInSeconds":240,"MaximumRetryAttempts":3}`},
	{"CleanupFunctionSchedule", "Properties.Target.DeadLetterConfig.Arn", "!GetAtt CleanupDeadLetterQueue.Arn"},
	{"CleanupAlarm", "Properties.TreatMissingData", "breaching"},
	{"CleanupErrorsAlarm", "Properties.DatapointsToAlarm", "1"}, // cleanup runs only once in five minutes
	{"DelayedQueueAgeAlarm", "Properties.Dimensions", `[{"Name":"QueueName","Value":"!GetAtt DelayedQueue.QueueName"}]`},
	{"DelayedQueueAgeAlarm", "Properties.Threshold", "3600"}, // places are at most 15 minutes ahead
	{"ReadyQueueAgeAlarm", "Properties.Dimensions", `[{"Name":"QueueName","Value":"!GetAtt ReadyQueue.QueueName"}]`},
	{"ReadyQueueAgeAlarm", "Properties.Threshold", "3600"},
	{"InvokePolicy", "Properties.PolicyDocument.Statement", invokeStatements()},
}

// invokeStatements returns the statements of the policy for backends.
func invokeStatements() string {
	var arns []string
	for _, g := range limits.All {
		arns = append(arns, `"!GetAtt `+scaffold.LogicalID(g.Name)+`Function.Arn"`)
	}
	list := "[" + strings.Join(arns, ",") + "]"
	return `[{"Action":"lambda:InvokeFunction","Effect":"Allow","Resource":` + list + `},{"Fn::If":["OpensUrls",` +
		`{"Action":"lambda:InvokeFunctionUrl","Condition":{"StringEquals":{"lambda:FunctionUrlAuthType":"AWS_IAM"}},"Effect":"Allow","Resource":` +
		list + `},"!Ref AWS::NoValue"]}]`
}

// safe lists the defaults of parameters. They must suit production.
var safe = map[string]string{
	"PointInTimeRecovery": "true", "DeletionProtection": "true", "UrlPrincipal": "", "Mode": "enforce", "OnOutage": "allow",
	"MaxWriteUnitsPerSecond": "0", "GuardConcurrency": "0", "LogRetentionDays": "30", "AlarmTopicArn": "",
}

// violations returns what is wrong with a transformed template, sorted.
func violations(template object) (all []string) {
	wrong := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	resources := template["Resources"].(object)
	for _, r := range rules {
		if got := show(at(resources[r.resource], r.path)); got != r.want {
			wrong("%s: %s is %s, want %s", r.resource, r.path, got, r.want)
		}
	}
	parameterViolations(template, wrong)
	for id, r := range resources {
		resourceViolations(id, r.(object), wrong)
		if at(r, "Type") == "AWS::Lambda::Function" {
			functionViolations(id, resources, wrong)
		}
	}
	slices.Sort(all)
	return all
}

// parameterViolations reports unsafe defaults, and parameters without a
// description or a check of their value.
func parameterViolations(template object, wrong func(string, ...any)) {
	for name, want := range safe {
		if got := show(at(template, "Parameters."+name+".Default")); got != want {
			wrong("the default of parameter %s is %q, want %q", name, got, want)
		}
	}
	for name, p := range template["Parameters"].(object) {
		p := p.(object)
		if len(show(p["Description"])) < 20 {
			wrong("parameter %s has no description", name)
		}
		if p["AllowedPattern"] == nil && p["AllowedValues"] == nil && p["MinValue"] == nil {
			wrong("parameter %s accepts any value", name)
		}
	}
}

// resourceViolations reports what is wrong with one resource, whatever else is in
// the template.
func resourceViolations(id string, r object, wrong func(string, ...any)) {
	switch r["Type"] {
	case "AWS::IAM::Role":
		arns, _ := at(r, "Properties.ManagedPolicyArns").([]any)
		for _, arn := range arns {
			if !managed[id+" "+show(arn)] && !managed[show(arn)] {
				wrong("%s has the policy %s", id, show(arn))
			}
		}
	case "AWS::CloudWatch::Alarm":
		for _, path := range []string{"AlarmActions", "OKActions"} {
			if got := show(at(r, "Properties."+path)); got != `[{"Fn::If":["SendsAlarms","!Ref AlarmTopicArn","!Ref AWS::NoValue"]}]` {
				wrong("%s: %s is %s", id, path, got)
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
				wrong("%s: %s is %s, want no wildcard", id, part, show(s[part]))
			}
		}
	}
}

// managed lists the policies of AWS that SAM adds to roles. With a role's name in
// front, only that role may have the policy.
var managed = map[string]bool{
	"arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole":                            true,
	"DelayedJobsFunctionRole arn:aws:iam::aws:policy/service-role/AWSLambdaSQSQueueExecutionRole": true,
}

// functionViolations reports what is wrong with a function and its alarms,
// permissions and retries.
func functionViolations(id string, resources object, wrong func(string, ...any)) {
	p := resources[id].(object)["Properties"]
	concurrency := `{"Fn::If":["ReservesConcurrency","!Ref GuardConcurrency","!Ref AWS::NoValue"]}`
	switch id {
	case "CleanupFunction":
		concurrency = "1"
	case "DelayedJobsFunction": // its queue starts up to 10 instances, and a smaller reservation would throttle it
		concurrency = "!Ref AWS::NoValue"
	}
	for path, want := range map[string]string{
		"Runtime": "provided.al2023", "Architectures": `["arm64"]`, "ReservedConcurrentExecutions": concurrency,
		"LoggingConfig": `{"ApplicationLogLevel":"INFO","LogFormat":"JSON","LogGroup":"!Ref LogGroup","SystemLogLevel":"!Ref SystemLogLevel"}`,
	} {
		if got := show(at(p, path)); got != want {
			wrong("%s: %s is %s, want %s", id, path, got, want)
		}
	}
	if got := show(at(resources[id+"EventInvokeConfig"], "Properties.MaximumRetryAttempts")); got != "0" {
		wrong("%s: Lambda retries %s times, want 0", id, got)
	}
	name := strings.TrimSuffix(id, "Function")
	for _, metric := range []string{"Errors", "Throttles"} {
		alarm := resources[name+metric+"Alarm"]
		dimensions := `[{"Name":"FunctionName","Value":"!Ref ` + id + `"}]`
		if show(at(alarm, "Properties.MetricName")) != metric || show(at(alarm, "Properties.Dimensions")) != dimensions {
			wrong("%s has no alarm for %s: %s", id, metric, show(alarm))
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

// statements returns the statements of all policies in v.
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
