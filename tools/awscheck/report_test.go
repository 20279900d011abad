package awscheck

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestTheReportAsJSON(t *testing.T) {
	r := Report{
		Date: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Commit: "cb61c2af-dirty", Region: "eu-west-1", Seconds: 481.5,
		Checks: []Result{
			{Name: "latency", Status: Passed, Figures: Figures{"callP50Millis": 23.1}, Seconds: 9.25},
			{Name: "circles", Status: Failed, Reason: "a loop was stopped after 40 rounds", Seconds: 30},
		},
	}
	want := `{
  "date": "2026-11-29T12:00:00Z",
  "commit": "cb61c2af-dirty",
  "region": "eu-west-1",
  "long": false,
  "seconds": 481.5,
  "checks": [
    {
      "name": "latency",
      "status": "passed",
      "figures": {
        "callP50Millis": 23.1
      },
      "seconds": 9.25
    },
    {
      "name": "circles",
      "status": "failed",
      "reason": "a loop was stopped after 40 rounds",
      "seconds": 30
    }
  ]
}
`
	var out bytes.Buffer
	testkit.OK(t, r.writeJSON(&out))
	testkit.Same(t, "the report", want, out.String())
	var back Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.exit() != exitFailed {
		t.Errorf("%v, exit %d, want 1: a check failed", err, back.exit())
	}
}

func TestTheReportAsText(t *testing.T) {
	r := Report{
		Date: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Commit: "cb61c2af", Region: "us-east-1", Endpoint: "http://127.0.0.1:4566", Seconds: 62,
		Checks: []Result{{Name: "roles", Status: Passed, Figures: Figures{"n": 18, "calls": 2}}, {Name: "agent", Status: Skipped, Reason: "no extension"}},
		Error:  "no role", Left: []string{"the table check-1f9c03: in use"},
	}
	want := `2026-11-29T12:00:00Z at commit cb61c2af, us-east-1, in 62 s
This is an emulator, so no figure is one of AWS: http://127.0.0.1:4566
roles         passed   calls=2 n=18
agent         skipped  (no extension)
error: no role
left: the table check-1f9c03: in use
`
	var out bytes.Buffer
	testkit.OK(t, r.writeText(&out))
	testkit.Same(t, "the report", want, out.String())
}

func TestQuantiles(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{nil, 0.5, 0},
		{[]float64{3, 1, 2}, 0, 1},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{3, 1, 2.345}, 0.5, 2.35},
		{[]float64{3, 1, 2}, 1, 3},
	} {
		if got := quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("quantile %v of %v is %v, want %v", tt.q, tt.values, got, tt.want)
		}
	}
}

// The lines are as AWS's documents show them.
func TestLambdasReport(t *testing.T) {
	for name, tt := range map[string]struct {
		log  string
		want invocation
	}{
		"a cold start, as text": {
			"START RequestId: 1 Version: $LATEST\nhello\nREPORT RequestId: 1\tDuration: 12.25 ms\tBilled Duration: 120 ms\tMemory Size: 256 MB\tMax Memory Used: 36 MB\tInit Duration: 106.50 ms\t\n",
			invocation{Duration: 12.25, Billed: 120, Init: 106.5, Memory: 36},
		},
		"a restored snapshot, as text": {
			"REPORT RequestId: 1\tDuration: 2.50 ms\tBilled Duration: 130 ms\tMemory Size: 256 MB\tMax Memory Used: 40 MB\tRestore Duration: 380.75 ms\tBilled Restore Duration: 127 ms\t\n",
			invocation{Duration: 2.5, Billed: 130, Restore: 380.75, Memory: 40},
		},
		"a cold start, as JSON": {
			`{"time":"2026-03-01T00:00:00.000Z","type":"platform.report","record":{"requestId":"1","metrics":{"durationMs":4.5,"billedDurationMs":5,"memorySizeMB":256,"maxMemoryUsedMB":30,"initDurationMs":41.5},"status":"success"}}` + "\n",
			invocation{Duration: 4.5, Billed: 5, Init: 41.5, Memory: 30},
		},
		"no report": {`{"level":"INFO","message":"instance started"}` + "\n", invocation{}},
	} {
		if got := parseReport(tt.log); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
