package cleanup

import (
	"bytes"

	"github.com/go-json-experiment/json"
)

// figures are a sweep's, in CloudWatch's embedded metric format. They have no
// dimension: there is one cleanup.
type figures struct {
	AWS struct {
		Timestamp         int64 // Unix milliseconds
		CloudWatchMetrics []directive
	} `json:"_aws"`
	Scanned, Deleted int64
	TrackedUsers     int64 // who had items before it
	StaleLeft        int64 // items that have expired and are still there
	Finished         int64 // 1: everything was looked at
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []definition
}

type definition struct{ Name, Unit string }

var definitions = []definition{
	{"Scanned", "Count"}, {"Deleted", "Count"}, {"TrackedUsers", "Count"}, {"StaleLeft", "Count"}, {"Finished", "Count"},
}

// measure writes one line of metrics.
func (c *Cleanup) measure(a Answer) {
	if c.Metrics == nil {
		return
	}
	f := figures{Scanned: a.Scanned, Deleted: a.Deleted, TrackedUsers: a.Users, StaleLeft: a.Stale - a.Deleted}
	if a.Finished {
		f.Finished = 1
	}
	f.AWS.Timestamp = c.now().UnixMilli()
	f.AWS.CloudWatchMetrics = []directive{{Namespace: c.Namespace, Dimensions: [][]string{{}}, Metrics: definitions}}
	var line bytes.Buffer
	if err := json.MarshalWrite(&line, f); err != nil {
		return // numbers and constants can always be marshalled
	}
	line.WriteByte('\n')
	_, _ = c.Metrics.Write(line.Bytes()) // a metric that is lost is no reason to fail
}
