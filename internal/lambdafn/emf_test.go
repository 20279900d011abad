package lambdafn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cric-talk/guards/internal/testkit"
)

// checkMetrics checks each line of metrics in a log against testdata/emf.schema.json, whose
// rules come from the section "Embedded metric format schema" of CloudWatch's documentation.
// It returns the number of lines.
func checkMetrics(t testing.TB, log string) (lines int) {
	t.Helper()
	schema := testkit.Must(jsonschema.NewCompiler().Compile("testdata/emf.schema.json"))(t)
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"_aws"`) {
			continue
		}
		lines++
		var root map[string]any
		if err := json.Unmarshal([]byte(line), &root); err != nil {
			t.Errorf("a line of metrics is not JSON: %v: %s", err, line)
		} else if err := schema.Validate(root); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
	return lines
}

func TestMetricLinesOfTheRealBinaries(t *testing.T) {
	r := newRig(t)
	posts := r.start(t, "posts-guard", "POWERTOOLS_METRICS_NAMESPACE=dev-Guards", "POWERTOOLS_SERVICE_NAME=dev-posts")
	posts.Ready(t)
	testkit.InOneWindow(t, time.Minute, 10*time.Second)
	for _, payload := range []string{
		event("create_post"),
		`{"userId": "` + canary + `", "activity": "create_post", "count": 9}`,
		event("create_post"), event("create_post"), event("create_post"), // some refused from memory, which is trusted for a second
		`{"userId": "u1", "activity": "create_post", "roles": ["admin"]}`,
	} {
		posts.Invoke(t, payload)
	}
	cleanup := r.start(t, "cleanup", "POWERTOOLS_METRICS_NAMESPACE=dev-Guards")
	cleanup.Invoke(t, `{}`)
	posts.Stop() // completes the log
	cleanup.Stop()
	if !strings.Contains(posts.Logs(), `"service":"dev-posts"`) {
		t.Errorf("the log lacks the configured service:\n%s", posts.Logs())
	}
	for name, tt := range map[string]struct {
		log   string
		names string
	}{
		"posts-guard": {posts.Logs(), "Allowed Refused Bypassed Requests NearLimit Crossed100 CacheRefusals"},
		"cleanup":     {cleanup.Logs(), "Scanned Deleted TrackedUsers StaleLeft Finished"},
	} {
		if checkMetrics(t, tt.log) == 0 {
			t.Errorf("%s: no line of metrics:\n%s", name, tt.log)
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

// The real binary reads METRICS. Without metrics it decides and logs as usual.
func TestMetricsCanBeOfTheGuardOrOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for choice, want := range map[string]string{"guard": `"Dimensions":[["Guard"]]`, "off": ""} {
		i := r.start(t, "posts-guard", "METRICS="+choice)
		if a, failed := ask(t, i, event("create_post")); !a.Allowed || failed != "" {
			t.Errorf("METRICS=%s: %+v %s", choice, a, failed)
		}
		i.Stop()
		lines := checkMetrics(t, i.Logs())
		if (lines > 0) != (want != "") || !strings.Contains(i.Logs(), want) || strings.Contains(i.Logs(), `"Activity"`) {
			t.Errorf("METRICS=%s: %d lines of metrics:\n%s", choice, lines, i.Logs())
		}
	}
}

// An instance under load writes one or two lines a second, and not one for each
// decision. No count is lost when the instance is shut down, and Lambda does not
// have to wait for its end.
func TestMetricsOfManyDecisionsTakeFewLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "comments-guard")
	const decisions = 200
	began := time.Now()
	for n := range decisions {
		i.Invoke(t, fmt.Sprintf(`{"userId": "u%d", "activity": "add_comment"}`, n))
	}
	took := time.Since(began)
	i.Stop()
	if exit := i.Exit(t); exit.Code != 0 {
		t.Errorf("shut down with status %d, want 0: Lambda had to kill the process", exit.Code)
	}
	if !strings.Contains(i.Logs(), `"Namespace":"Guards"`) {
		t.Errorf("the metrics lack the default namespace Guards:\n%s", i.Logs())
	}
	lines, allowed := checkMetrics(t, i.Logs()), 0
	for line := range strings.Lines(i.Logs()) {
		var metrics struct{ Allowed int }
		if json.Unmarshal([]byte(line), &metrics) == nil {
			allowed += metrics.Allowed
		}
	}
	if most := 2*int(took/time.Second) + 2; lines > most || allowed != decisions {
		t.Errorf("%d lines in %v count %d decisions, want at most %d lines and %d decisions", lines, took, allowed, most, decisions)
	}
}
