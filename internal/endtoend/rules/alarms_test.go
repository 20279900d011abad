package rules_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// An alarm is what one alarm watches, and when it goes off.
type alarm struct {
	describes string // its AlarmDescription
	watches   string // namespace, metric, and the dimension with its resource
	when      string // statistic, comparison, threshold, periods, and what a missing value means
}

// These rules are shared by several alarms. Periods are in seconds.
const (
	inMost  = "Sum >= 1 in 3 of 5 periods of 60, missing: notBreaching"
	inOne   = "Sum >= 1 in 1 of 1 periods of 300, missing: notBreaching" // cleanup runs only once in five minutes
	anyDead = "Maximum >= 1 in 1 of 1 periods of 60, missing: notBreaching"
	anHour  = "Maximum >= 3600 in 1 of 1 periods of 60, missing: notBreaching"
)

// alarms returns what each alarm of the stack must be.
func alarms(t *testing.T) map[string]alarm {
	t.Helper()
	const messages, age = "AWS/SQS ApproximateNumberOfMessagesVisible QueueName=", "AWS/SQS ApproximateAgeOfOldestMessage QueueName="
	all := map[string]alarm{
		"DegradedAlarm":            {"Guards can't reach the table and decide from memory or return Unavailable.", "${NamePrefix}Guards DegradedDecisions ", inMost},
		"TableWriteThrottlesAlarm": {"DynamoDB throttles writes to the table.", "AWS/DynamoDB WriteThrottleEvents TableName=Table", inMost},
		"TableReadThrottlesAlarm":  {"DynamoDB throttles reads from the table.", "AWS/DynamoDB ReadThrottleEvents TableName=Table", inMost},
		"CleanupAlarm": {
			"No run of cleanup has finished the whole table for an hour.", "${NamePrefix}Guards Finished ",
			"Sum < 1 in 1 of 1 periods of 3600, missing: breaching",
		},
		"CleanupDeadLettersAlarm": {"A run of cleanup failed or could not start.", messages + "CleanupDeadLetterQueue.QueueName", anyDead},
		"DelayedDeadLettersAlarm": {"Delayed jobs failed too often and are in the dead-letter queue.", messages + "DelayedDeadLetterQueue.QueueName", anyDead},
		"DelayedQueueAgeAlarm":    {"A job has been on the delayed queue for an hour. SQS deletes it after 4 days.", age + "DelayedQueue.QueueName", anHour},
		"ReadyQueueAgeAlarm":      {"A job has been on the ready queue for an hour. SQS deletes it after 4 days.", age + "ReadyQueue.QueueName", anHour},
	}
	for _, folder := range folders(t) {
		id := scaffold.LogicalID(folder)
		errors := inMost
		if folder == "cleanup" {
			errors = inOne
		}
		all[id+"ErrorsAlarm"] = alarm{folder + " returns errors or crashes.", "AWS/Lambda Errors FunctionName=" + id + "Function", errors}
		all[id+"ThrottlesAlarm"] = alarm{"Lambda throttles " + folder + ".", "AWS/Lambda Throttles FunctionName=" + id + "Function", inMost}
	}
	return all
}

func TestEachAlarmWatchesWhatItDescribes(t *testing.T) {
	got := map[string]alarm{}
	for id, r := range resources(t, "AWS::CloudWatch::Alarm") {
		if at(r, "Condition") != "MakesAlarms" {
			t.Errorf("%s is made with Alarms=false, too: it has no Condition MakesAlarms", id)
		}
		p := at(r, "Properties")
		dimension := ""
		if list, ok := at(p, "Dimensions").([]any); ok && len(list) == 1 {
			dimension = fmt.Sprintf("%v=%v", at(list[0], "Name"), at(list[0], "Value"))
		}
		comparison := map[any]string{"GreaterThanOrEqualToThreshold": ">=", "LessThanThreshold": "<"}[at(p, "ComparisonOperator")]
		got[id] = alarm{
			describes: fmt.Sprint(at(p, "AlarmDescription")),
			watches:   fmt.Sprint(at(p, "Namespace"), " ", at(p, "MetricName"), " ", dimension),
			when: fmt.Sprintf("%v %s %v in %v of %v periods of %v, missing: %v", at(p, "Statistic"), comparison, at(p, "Threshold"),
				at(p, "DatapointsToAlarm"), at(p, "EvaluationPeriods"), at(p, "Period"), at(p, "TreatMissingData")),
		}
		for _, actions := range []string{"AlarmActions", "OKActions"} { // when it starts and when it ends
			if to := show(at(p, actions)); to != `[["SendsAlarms","AlarmTopicArn","AWS::NoValue"]]` {
				t.Errorf("%s: %s are %s, want !If [SendsAlarms, !Ref AlarmTopicArn, !Ref AWS::NoValue]", id, actions, to)
			}
		}
	}
	testkit.Same(t, "alarms in template.yaml", alarms(t), got, cmp.AllowUnexported(alarm{}))
}

// A filter of the log counts the lines about outages, so the alarm works without the guards' metrics. A test of package guard
// shows that each decision without the table has such a line.
func TestTheAlarmOfOutagesHasItsMetric(t *testing.T) {
	const want = `{"FilterPattern":"{ $.message = \"table unavailable\" || $.message = \"item unreadable\" }","LogGroupName":"LogGroup","MetricTransformations":` +
		`[{"MetricName":"DegradedDecisions","MetricNamespace":"${NamePrefix}Guards","MetricValue":"1"}]}`
	if got := show(at(whole(t), "Resources.DegradedMetric.Properties")); got != want {
		t.Errorf("DegradedMetric is %s, want %s", got, want)
	}
}

// operating.md tells what each alarm means, with a name such as ...ThrottlesAlarm for the alarms of all functions.
func TestEachAlarmIsInTheDocument(t *testing.T) {
	document := read(t, "docs/operating.md")
	for _, id := range slices.Sorted(maps.Keys(alarms(t))) {
		general := strings.HasSuffix(id, "GuardErrorsAlarm") && strings.Contains(document, "`...GuardErrorsAlarm`") ||
			strings.HasSuffix(id, "ThrottlesAlarm") && strings.Contains(document, "`...ThrottlesAlarm`")
		if !general && !strings.Contains(document, "`"+id+"`") {
			t.Errorf("docs/operating.md does not explain %s: add it to the table of alarms", id)
		}
	}
}

// widgets returns the widgets of the dashboard by their titles, each as JSON. A name in ${} is cut to the name.
func widgets(t *testing.T) map[string]string {
	t.Helper()
	parts, _ := at(whole(t), "Resources.GuardsDashboard.Properties.DashboardBody").([]any)
	if len(parts) != 2 {
		t.Fatal("DashboardBody in template.yaml is no !Sub with a text and the lines of the guards")
	}
	if by := show(at(parts[1], "By")); by != `["MeasuresGuards","Guard","Guard,Activity"]` {
		t.Errorf("By is %s in the dashboard, want the dimensions of the guards' metrics for each choice of Metrics", by)
	}
	body, _ := parts[0].(string)
	body = strings.ReplaceAll(body, "${By}", "Guard,Activity")
	body = strings.Replace(body, "${Durations}", show(at(parts[1], "Durations")), 1)
	body = regexp.MustCompile(`\$\{([^}]+)\}`).ReplaceAllString(body, "$1")
	var board struct{ Widgets []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &board); err != nil {
		t.Fatalf("DashboardBody in template.yaml is not JSON: %v: look for a missing comma between two lines", err)
	}
	byTitle := map[string]string{}
	for _, w := range board.Widgets {
		var widget struct{ Properties struct{ Title string } }
		testkit.OK(t, json.Unmarshal(w, &widget))
		byTitle[widget.Properties.Title] = string(w)
	}
	return byTitle
}

// Each row names a widget by its title, and all that it shows.
func TestEachWidgetShowsWhatItsTitleNames(t *testing.T) {
	byActivity := func(metrics string) []string {
		return []string{`SEARCH('{\"NamePrefixGuards\",Guard,Activity} MetricName=` + metrics + `', 'Sum'`}
	}
	latency := []string{`"AWS/Lambda", "Duration", "FunctionName"`}
	for _, g := range cricket.All {
		latency = append(latency, `"FunctionName", "`+scaffold.LogicalID(g.Name)+`Function", {"stat": "p99"}`)
	}
	want := map[string][]string{
		"Allowed, by guard and activity": byActivity(`\"Allowed\"`),
		"Refused, by guard and activity; with subjects, by whose limit": append(byActivity(`\"Refused\"`),
			`SEARCH('{\"NamePrefixGuards\",Guard,Activity,LimitedBy} MetricName=\"RefusedBy\"', 'Sum'`),
		"Bypassed, shadowed and blocked; renewals of expired slots":            byActivity(`(\"Bypassed\" OR \"Shadowed\" OR \"Blocked\" OR \"Expired\")`),
		"Degraded: decided without the table":                                  byActivity(`\"Degraded\"`),
		"Near the limit: allowed, 80 % used; users who crossed 80 % and 100 %": byActivity(`(\"NearLimit\" OR \"Crossed80\" OR \"Crossed100\")`),
		"Prepaid: checks from a lease, and writes that took one":               byActivity(`(\"Leased\" OR \"Visits\")`),
		"Duration, p99":        latency,
		"Cold starts":          {`SOURCE 'LogGroup' | filter message = 'instance started' | stats count(*) by bin(5m), service`},
		"Table: capacity used": {`"AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", "Table"`, `"ConsumedReadCapacityUnits"`},
		"Table: throttles":     {`"AWS/DynamoDB", "WriteThrottleEvents", "TableName", "Table"`, `"ReadThrottleEvents"`},
		"Cleanup":              {`"NamePrefixGuards", "Scanned"`, `"Deleted"`, `"TrackedUsers"`, `"StaleLeft"`, `"Finished"`},
		"Queues: delayed, ready and dead jobs": {
			`"ApproximateNumberOfMessagesDelayed", "QueueName", "DelayedQueue.QueueName"`, `"ApproximateNumberOfMessagesVisible", ".", "ReadyQueue.QueueName"`,
			`".", ".", ".", "DelayedDeadLetterQueue.QueueName"`, `"CleanupDeadLetterQueue.QueueName"`,
		},
	}
	got := widgets(t)
	for title, parts := range want {
		testkit.Contains(t, "the widget "+title, got[title], parts...)
	}
	if len(got) != len(want) {
		t.Errorf("the dashboard has %d widgets, and this test %d", len(got), len(want))
	}
}
