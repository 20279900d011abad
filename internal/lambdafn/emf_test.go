package lambdafn_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// checkMetrics checks each line of metrics in a log against CloudWatch's schema
// of the embedded metric format. It also checks two rules that the schema
// leaves to its description: a dimension is a string member of the root, and a
// metric is a number member of the root. It returns the number of lines.
func checkMetrics(t testing.TB, log string) (lines int) {
	t.Helper()
	schema := emf(t)
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"_aws"`) {
			continue
		}
		lines++
		if err := invalidMetrics(schema, line); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
	return lines
}

// emf reads testdata/emf.schema.json. Its rules come from the section "Embedded
// metric format schema" of CloudWatch's documentation.
func emf(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	text, err := os.ReadFile("testdata/emf.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func invalidMetrics(schema *jsonschema.Resolved, line string) error {
	var root map[string]any
	if err := json.Unmarshal([]byte(line), &root); err != nil {
		return fmt.Errorf("a line of metrics is not JSON: %w", err)
	}
	if err := schema.Validate(root); err != nil {
		return err
	}
	for _, directive := range root["_aws"].(map[string]any)["CloudWatchMetrics"].([]any) {
		directive := directive.(map[string]any)
		for _, set := range directive["Dimensions"].([]any) {
			for _, name := range set.([]any) {
				if v, ok := root[name.(string)].(string); !ok || v == "" {
					return fmt.Errorf("the dimension %v is not a string of the root", name)
				}
			}
		}
		for _, metric := range directive["Metrics"].([]any) {
			name := metric.(map[string]any)["Name"].(string)
			if _, ok := root[name].(float64); !ok {
				return fmt.Errorf("the metric %s is not a number of the root", name)
			}
		}
	}
	return nil
}

func TestMetricLinesOfTheRealBinaries(t *testing.T) {
	r := newRig(t)
	posts := r.start(t, "posts-guard", "POWERTOOLS_METRICS_NAMESPACE=dev-Guards")
	inOneMinute(t, 5*time.Second)
	for _, payload := range []string{
		event("create_post"),
		`{"userId": "` + canary + `", "activity": "create_post", "count": 9}`,
		event("create_post"),
		`{"userId": "u1", "activity": "create_post", "roles": ["admin"]}`,
	} {
		posts.Invoke(t, payload)
	}
	cleanup := r.start(t, "cleanup", "POWERTOOLS_METRICS_NAMESPACE=dev-Guards")
	cleanup.Invoke(t, `{}`)
	posts.Stop() // completes the log
	cleanup.Stop()
	for name, tt := range map[string]struct {
		log   string
		lines int
		names string
	}{
		"posts-guard": {posts.Logs(), 4, "Allowed Refused Bypassed Requests NearLimit CacheRefusals"},
		"cleanup":     {cleanup.Logs(), 1, "Scanned Deleted TrackedUsers StaleLeft Finished"},
	} {
		if lines := checkMetrics(t, tt.log); lines != tt.lines {
			t.Errorf("%s: %d lines of metrics, want %d:\n%s", name, lines, tt.lines, tt.log)
		}
		for metric := range strings.FieldsSeq(tt.names) {
			if !strings.Contains(tt.log, `{"Name":"`+metric+`","Unit":"Count"}`) {
				t.Errorf("%s: the log lacks the metric %s:\n%s", name, metric, tt.log)
			}
		}
		if !strings.Contains(tt.log, `"Namespace":"dev-Guards"`) {
			t.Errorf("%s: the metrics lack the configured namespace:\n%s", name, tt.log)
		}
	}
}

func TestMetricLinesThatCloudWatchWouldRefuse(t *testing.T) {
	schema := emf(t)
	const good = `{"Guard":"g","N":1,"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"G","Dimensions":[["Guard"]],"Metrics":[{"Name":"N","Unit":"Count"}]}]}}`
	if err := invalidMetrics(schema, good); err != nil {
		t.Fatal(err)
	}
	for old, replacement := range map[string]string{
		`"Timestamp":1,`:      ``,
		`"Timestamp":1`:       `"Timestamp":"1"`,
		`"Namespace":"G"`:     `"Namespace":""`,
		`[["Guard"]]`:         `[]`,
		`["Guard"]`:           `"Guard"`,
		`"Unit":"Count"`:      `"Unit":"count"`,
		`{"Name":"N",`:        `{`,
		`"Guard":"g"`:         `"Guard":1`,
		`"N":1`:               `"N":"1"`,
		`"CloudWatchMetrics"`: `"Metrics"`,
	} {
		if line := strings.Replace(good, old, replacement, 1); invalidMetrics(schema, line) == nil {
			t.Errorf("%s in place of %s is accepted, want an error", replacement, old)
		}
	}
}
