package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

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
	for id, r := range at(whole(t), "Resources").(map[string]any) {
		if at(r, "Type") != "AWS::SQS::Queue" {
			continue
		}
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
