package jobs_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/testkit"
)

// A group asks for 25 jobs at once: 10 may run, and 15 have places in the next two
// windows. A job of another group is received before its time. No job arrives before
// its place, and no window has more than 10 places.
func TestJobsArriveAtTheirPlaces(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // 25 requests must fit into one window
		r := newRig(t, 60, 10)
		asked, worker := r.start("jobs-guard"), r.start("delayed-jobs")
		r.feed(worker)
		warmUp(t, asked)
		worker.Ready(t)
		inOneWindow(7 * time.Second)
		first := thisWindow()
		reasons := map[string]int{}
		for n := range 25 {
			a, _ := ask(t, asked, request(n))
			reasons[a.Reason]++
		}
		if diff := cmp.Diff(map[string]int{"ok": 10, "delayed": 15}, reasons); diff != "" {
			t.Fatalf("25 jobs (-want +got):\n%s", diff)
		}
		r.delayed.Send(message(t, "early-"+canary, 0, starts(first+2), 1))

		places := map[string]map[int64]int{canary: {}, "early-" + canary: {}} // by group and window
		seen := map[string]bool{}
		for by := time.Now().Add(2 * time.Minute); len(seen) < 15+1; {
			messages := r.ready.Take(1, time.Until(by))
			if len(messages) == 0 {
				t.Fatalf("%d of 16 jobs arrived: %v", len(seen), places)
			}
			m := messages[0]
			var job guard.Job
			if err := json.Unmarshal([]byte(m.Body), &job); err != nil {
				t.Fatal(err)
			}
			if early := job.ReadyAt - m.Sent.UnixMilli(); early > 0 {
				t.Errorf("%s arrived %d ms before its time", m.Body, early)
			}
			if !seen[m.Body] {
				seen[m.Body] = true
				places[job.UserID][key(job.ReadyAt)]++
			}
		}
		want := map[string]map[int64]int{canary: {first + 1: 10, first + 2: 5}, "early-" + canary: {first + 2: 1}}
		if diff := cmp.Diff(want, places); diff != "" {
			t.Errorf("places (-want +got):\n%s", diff)
		}
	})
}
