package rules_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

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
		if err := json.Unmarshal(w, &widget); err != nil {
			t.Fatal(err)
		}
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
		for _, part := range parts {
			if !strings.Contains(got[title], part) {
				t.Errorf("the widget %q does not show %s: %s", title, part, got[title])
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("the dashboard has %d widgets, and this test %d", len(got), len(want))
	}
}
