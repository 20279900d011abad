package guard_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/guard"
)

func TestEveryDecisionIsInTheMetrics(t *testing.T) {
	b := newBench(t)
	for _, event := range []string{`{"count": 7}`, `{}`, `{"op": "status"}`, `{"count": 2}`, `{}`, `{"roles": ["admin"]}`} {
		b.mustAsk(event)
		b.Metrics.Flush()
	}
	b.Mode = Shadow
	b.mustAsk(`{}`)
	b.Metrics.Flush()
	lines := strings.Split(strings.TrimSpace(b.lines.String()), "\n")
	for i, want := range []fields{
		{"Allowed": 1.0, "Requests": 1.0},
		{"Allowed": 1.0, "Requests": 1.0, "NearLimit": 1.0},
		{"Requests": 1.0}, // a status
		{"Allowed": 1.0, "Requests": 1.0, "NearLimit": 1.0},
		{"Refused": 1.0, "Requests": 0.0, "CacheRefusals": 1.0},
		{"Bypassed": 1.0},
		{"Shadowed": 1.0, "Requests": 0.0, "CacheRefusals": 1.0},
	} {
		var metrics []any
		got := parse(t, []byte(lines[i]))
		for _, name := range []string{"Allowed", "Refused", "Bypassed", "Shadowed", "Requests", "NearLimit", "CacheRefusals"} {
			if _, ok := want[name]; ok {
				metrics = append(metrics, fields{"Name": name, "Unit": "Count"})
			}
		}
		want["Guard"], want["Activity"] = "posts-guard", "create_post"
		want["_aws"] = fields{"Timestamp": float64(startMillis), "CloudWatchMetrics": []any{fields{
			"Namespace": "Guards", "Dimensions": []any{[]any{"Guard", "Activity"}}, "Metrics": metrics,
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
}
