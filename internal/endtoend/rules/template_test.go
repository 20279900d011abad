package rules_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/strictjson"
	"github.com/cric-talk/guards/internal/testkit"
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
		testkit.Same(t, "functions/"+folder+": IAM actions in template.yaml. If you mean them, change allowedActions in this test", slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got)))
	}
}

// Lambda stops a function after about 16 rounds if it sends to the queue that invokes it,
// unless the function may do that. No other function may.
func TestOnlyAFunctionThatSendsToItsOwnQueueMayLoop(t *testing.T) {
	for id, r := range resources(t, "AWS::Serverless::Function") {
		want := "null"
		events, _ := at(r, "Properties.Events").(map[string]any)
		for _, policy := range list(at(r, "Properties.Policies")) {
			for _, s := range list(at(policy, "Statement")) {
				for _, e := range events {
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

// resources returns the resources of a type, such as AWS::SQS::Queue. There are some of each.
func resources(t *testing.T, kind string) map[string]any {
	t.Helper()
	all := maps.Clone(at(whole(t), "Resources").(map[string]any))
	maps.DeleteFunc(all, func(_ string, r any) bool { return at(r, "Type") != kind })
	if len(all) == 0 {
		t.Fatalf("template.yaml has no %s", kind)
	}
	return all
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

// Each row quotes a sentence of a document, and names the value of template.yaml that makes it true.
func TestTheTemplateKeepsPromises(t *testing.T) {
	const deploying, jobs, operating, decides, own = "docs/deploying.md", "docs/delayed-jobs.md", "docs/operating.md", "docs/how-it-works.md", "template.yaml"
	for _, row := range []struct{ document, sentence, path, want string }{
		{deploying, "the table `rateLimit`", "Parameters.TableName.Default", "rateLimit"},
		{deploying, "attach the managed policy in the output `InvokePolicyArn` to your backend's role", "Outputs.InvokePolicyArn.Value", "InvokePolicy"},
		{deploying, "The stack's parameters set these variables of the functions", "Globals.Function.Environment.Variables.TABLE_NAME", "Table"},
		{deploying, "`delayed-jobs` always runs at most 10 instances", "Resources.DelayedJobsFunction.Properties.Events", `{"Delayed":{"Properties":{"BatchSize":10,` +
			`"FunctionResponseTypes":["ReportBatchItemFailures"],"Queue":"DelayedQueue.Arn","ScalingConfig":{"MaximumConcurrency":10}},"Type":"SQS"}}`},
		{deploying, "`cleanup` reserves one of your account's concurrent executions", "Resources.CleanupFunction.Properties.ReservedConcurrentExecutions", `["ReservesCleanup",1,"AWS::NoValue"]`},
		{deploying, "`cleanup` reserves one of your account's concurrent executions", "Parameters.CleanupConcurrency.Default", "1"},
		{deploying, "The function `cleanup` runs every five minutes", "Parameters.CleanupSchedule.Default", "rate(5 minutes)"},
		{deploying, "The function `cleanup` runs every five minutes", "Resources.CleanupFunction.Properties.Events", `{"Schedule":{"Properties":{` +
			`"DeadLetterConfig":{"Arn":"CleanupDeadLetterQueue.Arn"},"Input":"{}","Name":"${NamePrefix}cleanup",` +
			`"RetryPolicy":{"MaximumEventAgeInSeconds":240,"MaximumRetryAttempts":3},"ScheduleExpression":"CleanupSchedule"},"Type":"ScheduleV2"}}`},
		{deploying, "**The table outlives its stack.**", "Resources.Table.DeletionPolicy", "Retain"},
		{deploying, "**The table outlives its stack.**", "Resources.Table.UpdateReplacePolicy", "Retain"},
		{deploying, "the attribute `service` of each line of log", "Globals.Function.Environment.Variables.POWERTOOLS_SERVICE_NAME", "null"},
		{deploying, "`Guards`, after the `NamePrefix`", "Globals.Function.Environment.Variables.POWERTOOLS_METRICS_NAMESPACE", "${NamePrefix}Guards"},
		{deploying, "DynamoDB throttles writes above it", "Resources.Table.Properties.OnDemandThroughput",
			`["Caps",{"MaxReadRequestUnits":["CapsReads","MaxReadUnitsPerSecond","AWS::NoValue"],"MaxWriteRequestUnits":["CapsWrites","MaxWriteUnitsPerSecond","AWS::NoValue"]},"AWS::NoValue"]`},

		{jobs, "`ReadyQueueUrl` in the stack's outputs is its address", "Outputs.ReadyQueueUrl.Value", "ReadyQueue"},
		{jobs, "A Lambda consumer needs an event source mapping on `ReadyQueueArn`", "Outputs.ReadyQueueArn.Value", "ReadyQueue.Arn"},
		{jobs, "goes to the dead-letter queue (`DelayedDeadLetterQueueArn`)", "Outputs.DelayedDeadLetterQueueArn.Value", "DelayedDeadLetterQueue.Arn"},
		{jobs, "Its visibility timeout is 180 s", "Resources.ReadyQueue.Properties.VisibilityTimeout", "ReadyVisibilityTimeout"},
		{jobs, "Its visibility timeout is 180 s", "Parameters.ReadyVisibilityTimeout.Default", "180"},
		{jobs, "SQS keeps a message for 4 days", "Resources.DelayedQueue.Properties.MessageRetentionPeriod", "345600"},
		{jobs, "SQS keeps a message for 4 days", "Resources.ReadyQueue.Properties.MessageRetentionPeriod", "345600"},
		{jobs, "A message that failed 10 times, once a minute", "Resources.DelayedQueue.Properties.RedrivePolicy", `{"deadLetterTargetArn":"DelayedDeadLetterQueue.Arn","maxReceiveCount":10}`},
		{own, "6 times the function's Timeout", "Resources.DelayedQueue.Properties.VisibilityTimeout", "60"}, // Lambda's documentation recommends it
		{jobs, "SQS deletes it 14 days after it was first sent", "Resources.DelayedDeadLetterQueue.Properties.MessageRetentionPeriod", "1209600"},

		{jobs, "The template sets this for `delayed-jobs`", "Resources.DelayedJobsFunction.Properties.RecursiveLoop", "Allow"},
		{jobs, "the function `delayed-jobs` puts the job on the ready queue", "Resources.DelayedJobsFunction.Properties.Environment.Variables", `{"DELAYED_QUEUE_URL":"DelayedQueue","READY_QUEUE_URL":"ReadyQueue"}`},

		{decides, "A decision costs one request and one write unit", "Resources.Table.Properties.BillingMode", "PAY_PER_REQUEST"},
		{decides, "A decision costs one request and one write unit", "Resources.Table.Properties.GlobalSecondaryIndexes", "null"},
		{own, "DynamoDB encrypts with its own key, which costs nothing", "Resources.Table.Properties.SSESpecification", "null"},

		{operating, "10 ms of 256 MB each", "Globals.Function.MemorySize", "256"},
		{operating, "8,640 runs of a second, 512 MB", "Resources.CleanupFunction.Properties.MemorySize", "512"},
		{operating, "or took more than 10 s", "Resources.DelayedJobsFunction.Properties.Timeout", "null"}, // the timeout of Globals, below
		{operating, "(START, END and REPORT, about 600 bytes for each invocation) are off", "Parameters.SystemLogLevel.Default", "WARN"},
		{operating, "the names are `dev-posts-guard` and `/aws/lambda/dev-guards`", "Resources.LogGroup.Properties.LogGroupName", "/aws/lambda/${NamePrefix}guards"},
		{operating, "deploy with a new `TableName`. The stack creates that table", "Resources.Table.Properties.TableName", "TableName"},

		{own, "A run takes at most 5 minutes", "Resources.CleanupFunction.Properties.Timeout", "300"},
		{own, "a run that waits a minute for another one goes to CleanupDeadLetterQueue", "Resources.CleanupFunction.Properties.EventInvokeConfig",
			`{"DestinationConfig":{"OnFailure":{"Destination":"CleanupDeadLetterQueue.Arn","Type":"SQS"}},"MaximumEventAgeInSeconds":60,"MaximumRetryAttempts":0}`},
		{own, "Lambda must not try again and count twice", "Globals.Function.EventInvokeConfig.MaximumRetryAttempts", "0"},
		{own, "enough for a cold start and the longest DecisionTimeout", "Globals.Function.Timeout", "10"},
		{own, "Keep the last 35 days of the table restorable", "Resources.Table.Properties.PointInTimeRecoverySpecification", `{"PointInTimeRecoveryEnabled":"PointInTimeRecovery"}`},
		{own, "Keep the last 35 days of the table restorable", "Parameters.PointInTimeRecovery.Default", "true"},
		{own, "Protect the table from deletion by anybody", "Parameters.DeletionProtection.Default", "true"},
		{own, "Protect the table from deletion by anybody", "Resources.Table.Properties.DeletionProtectionEnabled", "DeletionProtection"},
		{own, "The number of instances reserved for each guard", "Globals.Function.ReservedConcurrentExecutions", `["ReservesConcurrency","GuardConcurrency","AWS::NoValue"]`},
		{own, "delayed-jobs always has at most 10 and reserves none", "Resources.DelayedJobsFunction.Properties.ReservedConcurrentExecutions", "AWS::NoValue"},
		{own, "How many days logs are kept", "Resources.LogGroup.Properties.RetentionInDays", "LogRetentionDays"},
		{own, "All functions share one group", "Globals.Function.LoggingConfig", `{"ApplicationLogLevel":"INFO","LogFormat":"JSON","LogGroup":"LogGroup","SystemLogLevel":"SystemLogLevel"}`},
		{own, "a safety net in case cleanup fails", "Resources.Table.Properties.TimeToLiveSpecification", `{"AttributeName":"expiresAt","Enabled":true}`},
	} {
		if text := strings.Join(strings.Fields(read(t, row.document)), " "); !strings.Contains(text, row.sentence) {
			t.Errorf("%s does not say %q: change this row too", row.document, row.sentence)
		}
		if got := show(at(whole(t), row.path)); got != row.want {
			t.Errorf("%s is %s, want %s, because %s says %q", row.path, got, row.want, row.document, row.sentence)
		}
	}
}

// The queues have no name of their own, keep nothing after the stack, and are encrypted.
func TestQueuesAreAsTheTemplateDescribes(t *testing.T) {
	for id, r := range resources(t, "AWS::SQS::Queue") {
		p := at(r, "Properties")
		if at(p, "QueueName") != nil || at(r, "DeletionPolicy") != "Delete" || at(p, "SqsManagedSseEnabled") != true {
			t.Errorf("%s is %s", id, show(r))
		}
	}
}

// A value of 0, an empty one and "false" turn a part of the stack off. The parser takes !Not [!Equals [a, b]] for [[a, b]].
func TestConditionsOfTheTemplate(t *testing.T) {
	for condition, want := range map[string]struct{ parameter, equals, byDefault string }{
		"CapsWrites": {"MaxWriteUnitsPerSecond", `[["MaxWriteUnitsPerSecond",0]]`, "0"}, "CapsReads": {"MaxReadUnitsPerSecond", `[["MaxReadUnitsPerSecond",0]]`, "0"},
		"ReservesConcurrency": {"GuardConcurrency", `[["GuardConcurrency",0]]`, "0"}, "ReservesCleanup": {"CleanupConcurrency", `[["CleanupConcurrency",0]]`, "1"},
		"SendsAlarms": {"AlarmTopicArn", `[["AlarmTopicArn",""]]`, ""}, "OpensUrls": {"UrlPrincipal", `[["UrlPrincipal",""]]`, ""},
		"MakesAlarms": {"Alarms", `["Alarms","true"]`, "true"}, "MakesDashboard": {"Dashboard", `["Dashboard","true"]`, "true"},
		"MeasuresGuards": {"Metrics", `["Metrics","guard"]`, "activity"},
	} {
		got, byDefault := show(at(whole(t), "Conditions."+condition)), show(at(whole(t), "Parameters."+want.parameter+".Default"))
		if got != want.equals || byDefault != want.byDefault {
			t.Errorf("%s in template.yaml is %s, and the parameter's default is %q, want %v", condition, got, byDefault, want)
		}
	}
	for resource, condition := range map[string]string{"GuardsDashboard": "MakesDashboard", "DegradedMetric": "MakesAlarms"} {
		if got := at(whole(t), "Resources."+resource+".Condition"); got != condition {
			t.Errorf("%s has the Condition %v, want %s", resource, got, condition)
		}
	}
	if got := at(whole(t), "Outputs.DashboardName.Condition"); got != "MakesDashboard" {
		t.Errorf("the output DashboardName has the Condition %v, but there may be no dashboard", got)
	}
}

// A second stack in the same account and region has another NamePrefix and TableName. So every fixed name contains one of
// them, or the stack's own name.
func TestNoTwoStacksShareAName(t *testing.T) {
	names := map[string]string{} // by resource and property
	for id, r := range at(whole(t), "Resources").(map[string]any) {
		properties := at(r, "Properties").(map[string]any)
		for name, value := range properties {
			if slices.Contains([]string{"FunctionName", "LogGroupName", "DashboardName", "TableName", "QueueName", "AlarmName", "RoleName", "ManagedPolicyName", "TopicName"}, name) {
				names[id+" "+name] = show(value)
			}
		}
	}
	names["schedule"] = show(at(whole(t), "Resources.CleanupFunction.Properties.Events.Schedule.Properties.Name"))
	for what, name := range names {
		_, refers := at(whole(t), "Resources").(map[string]any)[name]
		if !refers && name != "TableName" && !strings.HasPrefix(name, "${NamePrefix}") && !strings.HasPrefix(name, "/aws/lambda/${NamePrefix}") {
			t.Errorf("%s is %s, want a name with the NamePrefix", what, name)
		}
	}
	for _, folder := range folders(t) {
		if got, want := names[scaffold.LogicalID(folder)+"Function FunctionName"], "${NamePrefix}"+folder; got != want {
			t.Errorf("the name of functions/%s is %s, want %s", folder, got, want)
		}
	}
}
