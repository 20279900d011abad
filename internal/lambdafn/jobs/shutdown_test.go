package jobs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/sqstest"
)

// Counts wait up to a second for a line of metrics. When Lambda shuts an instance
// down, they are written at once.
func TestNoCountIsLostAtAShutdown(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	for function, work := range map[string]func(n int) string{
		"jobs-guard": func(n int) string {
			return fmt.Sprintf(`{"userId": "group%d", "activity": "update_member_role"}`, n)
		},
		"delayed-jobs": func(n int) string { return string(sqstest.Event(t, message(t, fmt.Sprint("group", n), n, 1, 1))) },
	} {
		i := r.start(function)
		began := time.Now()
		const decisions = 20 // of different groups, which are all allowed
		for n := range decisions {
			if got := i.Invoke(t, work(n)); got.ErrorType != "" {
				t.Fatalf("%s: %+v", function, got)
			}
		}
		i.Stop()
		if want := `"Guard":"` + function + `","Activity":"update_member_role"`; !strings.Contains(i.Logs(), want) {
			t.Errorf("%s: the log lacks the dimensions %s:\n%s", function, want, i.Logs())
		}
		counted := 0
		for line := range strings.Lines(i.Logs()) {
			var metrics struct{ Allowed int }
			if json.Unmarshal([]byte(line), &metrics) == nil {
				counted += metrics.Allowed
			}
		}
		if counted != decisions {
			t.Errorf("%s: the log counts %d of %d decisions in %v", function, counted, decisions, time.Since(began))
		}
	}
}
