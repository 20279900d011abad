package jobs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Three groups send jobs at the same time, in real time:
//
//   - The first group asks for 25 jobs, and puts the allowed ones on the ready
//     queue.
//   - The second group has 12 jobs whose places have passed.
//   - The third group has a message that is received before its time.
func TestJobsArriveInTheirWindows(t *testing.T) {
	t.Parallel()
	r := newRig(t, 60, 10)
	asked, worker := r.start("jobs-guard"), r.start("delayed-jobs")
	r.feed(worker)
	warmUp(t, asked)
	worker.Ready(t)
	inOneWindow(7 * time.Second)

	const asks, late, premature = "asks-" + canary, "late-" + canary, "early-" + canary
	first := thisWindow()
	letThrough := map[int64]int{} // allowed jobs, by window
	for n := range 25 {
		switch a, got := ask(t, asked, request(asks, n, "")); a.Reason {
		case "ok": // the caller runs the job; here it uses the same queue
			letThrough[a.WindowKey]++
			r.ready.Send(message(t, asks, n, starts(a.WindowKey), int64(n+1)))
		case "delayed":
		default:
			t.Fatalf("job %d: %s", n, got)
		}
	}
	slow := thisWindow() != first // if the machine is too slow, a job misses its window and takes another place
	for n := range 12 {
		r.delayed.Send(message(t, late, n, starts(first-100), int64(n+1)))
	}
	early := message(t, premature, 0, starts(first+2), 1)
	r.delayed.Send(early)

	groups := collect(t, r, 25+12+1)
	for _, a := range slices.Concat(groups[asks], groups[premature]) {
		slow = slow || a.window != key(a.readyAt)
	}
	atOnce := map[int64]int{} // late jobs that found a free place, by window
	for _, a := range groups[late] {
		if key(a.readyAt) == first-100 {
			atOnce[a.window]++
		} else {
			slow = slow || a.window != key(a.readyAt)
		}
	}
	for at, n := range atOnce {
		slow = slow || len(atOnce) > 1 || at != first // a window ended while they arrived
		t.Logf("%d late jobs at once in window %d", n, at)
	}
	for group, want := range map[string]map[int64]int{
		asks:      {first: 10, first + 1: 10, first + 2: 5},
		late:      {first: 10, first + 1: 2},
		premature: {first + 2: 1},
	} {
		windows := map[int64]int{}
		for _, a := range groups[group] {
			windows[a.window]++
		}
		t.Logf("%s by window: %v", group, windows)
		if !maps.Equal(windows, want) && !slow {
			t.Errorf("%s by window: %v, want %v", group, windows, want)
		}
	}
	if slow {
		t.Log("this machine was too slow for every job to arrive in its window")
	}
	for at, n := range allowed(t, worker.Logs()) {
		letThrough[at] += n
	}
	for at, n := range letThrough {
		if n > 10+10+1 {
			t.Errorf("%d jobs were allowed in window %d, want at most 10 each of two groups and 1 of the third", n, at)
		}
	}
}

// An arrival is a job on the ready queue.
type arrival struct {
	readyAt int64
	window  int64 // in which it arrived
}

// collect waits for n different jobs and returns them by group. No job may
// arrive before its time.
func collect(t *testing.T, r *rig, n int) map[string][]arrival {
	t.Helper()
	groups, seen := map[string][]arrival{}, map[string]bool{}
	for by := time.Now().Add(2 * time.Minute); len(seen) < n; {
		messages := r.ready.Take(1, time.Until(by))
		if len(messages) == 0 {
			t.Fatalf("%d of %d jobs arrived: %v", len(seen), n, groups)
		}
		job, number := parse(t, messages[0].Body)
		sent := messages[0].Sent.UnixMilli()
		if sent < job.ReadyAt {
			t.Errorf("%s arrived %d ms before its time", messages[0].Body, job.ReadyAt-sent)
		}
		if name := fmt.Sprint(job.UserID, " ", number); !seen[name] {
			seen[name] = true
			groups[job.UserID] = append(groups[job.UserID], arrival{job.ReadyAt, key(sent)})
		}
	}
	return groups
}

// allowed returns how many jobs a function allowed in each window, according to
// its metrics.
func allowed(t *testing.T, log string) map[int64]int {
	t.Helper()
	windows := map[int64]int{}
	for line := range strings.Lines(log) {
		var m struct {
			AWS     struct{ Timestamp int64 } `json:"_aws"`
			Allowed int
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Allowed > 0 {
			windows[key(m.AWS.Timestamp)] += m.Allowed
		}
	}
	if len(windows) == 0 {
		t.Errorf("no metrics in the log:\n%s", log)
	}
	return windows
}
