package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/strictjson"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
	"github.com/cric-talk/guards/limits"
)

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
	const deploying, jobs, operating, own = "docs/deploying.md", "docs/delayed-jobs.md", "docs/operating.md", "template.yaml"
	for _, row := range []struct{ document, sentence, path, want string }{
		{deploying, "the table `rateLimit`", "Parameters.TableName.Default", "rateLimit"},
		{deploying, "attach the managed policy in the output `InvokePolicyArn` to your backend's role", "Outputs.InvokePolicyArn.Value", "InvokePolicy"},
		{deploying, "The stack's parameters set these variables of the functions", "Globals.Function.Environment.Variables.TABLE_NAME", "Table"},
		{deploying, "The stack's parameters set these variables of the functions", "Resources.Table.Properties.TableName", "TableName"},
		{deploying, "`delayed-jobs` always runs at most 10 instances", "Resources.DelayedJobsFunction.Properties.Events.Delayed.Properties.ScalingConfig.MaximumConcurrency", "10"},
		{deploying, "`cleanup` reserves one of your account's concurrent executions", "Resources.CleanupFunction.Properties.ReservedConcurrentExecutions", "1"},
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
		{jobs, "A message that failed 10 times, once a minute", "Resources.DelayedQueue.Properties.RedrivePolicy.maxReceiveCount", "10"},
		{jobs, "A message that failed 10 times, once a minute", "Resources.DelayedQueue.Properties.VisibilityTimeout", "60"},
		{jobs, "SQS deletes it 14 days after it was first sent", "Resources.DelayedDeadLetterQueue.Properties.MessageRetentionPeriod", "1209600"},

		{operating, "10 ms of 256 MB each", "Globals.Function.MemorySize", "256"},
		{operating, "8,640 runs of a second, 512 MB", "Resources.CleanupFunction.Properties.MemorySize", "512"},
		{operating, "or took more than 10 s", "Resources.DelayedJobsFunction.Properties.Timeout", "null"}, // that of Globals, below
		{operating, "SQS deletes a job 4 days after it was sent", "Resources.ReadyQueue.Properties.MessageRetentionPeriod", "345600"},
		{operating, "(START, END and REPORT, about 600 bytes for each invocation) are off", "Parameters.SystemLogLevel.Default", "WARN"},
		{operating, "the names are `dev-posts-guard` and `/aws/lambda/dev-guards`", "Resources.LogGroup.Properties.LogGroupName", "/aws/lambda/${NamePrefix}guards"},
		{operating, "deploy with a new `TableName`. The stack creates that table", "Resources.Table.Properties.TableName", "TableName"},

		{own, "A run takes at most 5 minutes", "Resources.CleanupFunction.Properties.Timeout", "300"},
		{own, "and runs never overlap", "Resources.CleanupFunction.Properties.ReservedConcurrentExecutions", "1"},
		{own, "a run that waits a minute for another one goes to CleanupDeadLetterQueue", "Resources.CleanupFunction.Properties.EventInvokeConfig",
			`{"DestinationConfig":{"OnFailure":{"Destination":"CleanupDeadLetterQueue.Arn","Type":"SQS"}},"MaximumEventAgeInSeconds":60,"MaximumRetryAttempts":0}`},
		{own, "Lambda must not try again and count twice", "Globals.Function.EventInvokeConfig.MaximumRetryAttempts", "0"},
		{own, "enough for a cold start and the longest DecisionTimeout", "Globals.Function.Timeout", "10"},
		{own, "Keep the last 35 days of the table restorable", "Resources.Table.Properties.PointInTimeRecoverySpecification", `{"PointInTimeRecoveryEnabled":"PointInTimeRecovery"}`},
		{own, "Protect the table from deletion by anybody", "Resources.Table.Properties.DeletionProtectionEnabled", "DeletionProtection"},
		{own, "The number of instances reserved for each guard", "Globals.Function.ReservedConcurrentExecutions", `["ReservesConcurrency","GuardConcurrency","AWS::NoValue"]`},
		{own, "delayed-jobs always has at most 10 and reserves none", "Resources.DelayedJobsFunction.Properties.ReservedConcurrentExecutions", "AWS::NoValue"},
		{own, "an instance works on that many jobs at once", "Resources.DelayedJobsFunction.Properties.Events.Delayed.Properties.BatchSize", "10"},
		{own, "CloudFormation names the queues", "Resources.DelayedQueue.Properties.QueueName", "null"},
		{own, "are deleted with the stack", "Resources.DelayedQueue.DeletionPolicy", "Delete"},
		{own, "are deleted with the stack", "Resources.ReadyQueue.DeletionPolicy", "Delete"},
		{own, "are deleted with the stack", "Resources.DelayedDeadLetterQueue.DeletionPolicy", "Delete"},
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

// A value of 0, and an empty one, turn a part of the stack off.
func TestConditionsOfTheTemplate(t *testing.T) {
	for condition, parameter := range map[string]string{
		"CapsWrites": "MaxWriteUnitsPerSecond, 0", "CapsReads": "MaxReadUnitsPerSecond, 0", "ReservesConcurrency": "GuardConcurrency, 0",
		"SendsAlarms": `AlarmTopicArn, ""`, "OpensUrls": `UrlPrincipal, ""`,
	} {
		line := "\n  " + condition + ": !Not [!Equals [!Ref " + parameter + "]]\n"
		name, off, _ := strings.Cut(parameter, ", ")
		if value := fmt.Sprintf("%#v", at(whole(t), "Parameters."+name+".Default")); value != off && value != "0x"+off || !strings.Contains(read(t, "template.yaml"), line) {
			t.Errorf("template.yaml lacks the line %q, or the default of %s is %s, want %s", line, name, value, off)
		}
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

// deploying.md names what each configuration of samconfig.toml does.
func TestConfigurationsOfSAM(t *testing.T) {
	text := read(t, "samconfig.toml")
	for section, lines := range map[string][]string{
		"dev.deploy.parameters":     {`stack_name = "guards-dev"`, "confirm_changeset = false", `parameter_overrides = "NamePrefix=dev- TableName=dev-rateLimit `},
		"prod.deploy.parameters":    {`stack_name = "guards"`, "confirm_changeset = true"},
		"default.deploy.parameters": {`stack_name = "guards"`, "confirm_changeset = true"},
	} {
		_, after, _ := strings.Cut(text, "\n["+section+"]\n")
		part, _, _ := strings.Cut(after, "\n[")
		for _, line := range lines {
			if !strings.Contains(part, line) {
				t.Errorf("[%s] of samconfig.toml lacks %s", section, line)
			}
		}
	}
}

// deploying.md names what each of these targets of make does. Without RECORDER, the tests of the stack are skipped.
func TestTargetsThatDeploy(t *testing.T) {
	makefile := read(t, "Makefile") + read(t, "project.mk")
	for target, commands := range map[string][]string{
		"deploy":       {"/sam build\n", "/sam deploy --guided\n"},
		"deploy-local": {"scripts/with-aws bash $(GUARDS)/scripts/deploy-local $(CALL)\n"},
		"deployment":   {"RECORDER=1 scripts/with-aws go test ", " ./internal/endtoend/deployment\n"},
	} {
		_, after, _ := strings.Cut(makefile, "\n"+target+": ")
		recipe, _, _ := strings.Cut(after, "\n\n")
		recipe += "\n"
		for _, command := range commands {
			_, rest, found := strings.Cut(recipe, command)
			if !found {
				t.Errorf("make %s does not run %q, or not in this order", target, command)
			}
			recipe = rest
		}
	}
}

// Who deletes the table loses counts. The longest window is that of pins.
func TestTheDocumentNamesTheLongestWindow(t *testing.T) {
	longest := time.Duration(0)
	for _, g := range limits.All {
		for _, a := range g.Activities {
			for _, r := range a.Limit.Rates() {
				longest = max(longest, r.Window)
			}
		}
	}
	if sentence := fmt.Sprintf("at most %.0f hours of them", longest.Hours()); !strings.Contains(read(t, "docs/deploying.md"), sentence) {
		t.Errorf("docs/deploying.md does not say that a lost table loses the counts, %s", sentence)
	}
}
