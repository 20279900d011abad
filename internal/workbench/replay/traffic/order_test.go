package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// file returns CSV with a request at each time, in milliseconds. Users are numbered.
func file(times ...int64) string {
	var b strings.Builder
	b.WriteString("time,user,activity\n")
	for i, at := range times {
		fmt.Fprintf(&b, "%d,u%d,a\n", at, i)
	}
	return b.String()
}

// steps returns n times that begin at first.
func steps(first, step int64, n int) (times []int64) {
	for i := range n {
		times = append(times, first+int64(i)*step)
	}
	return times
}

// Lines may be ten minutes out of order, and are read in the order of time. A
// file may run backwards.
func TestOrder(t *testing.T) {
	const minute = 60_000
	twice := append(steps(minute, minute, 100), steps(minute, minute, 100)...)
	for _, tt := range []struct {
		name      string
		times     []int64
		back      int64
		furthest  time.Duration
		backwards bool
		problem   string
	}{
		{name: "a few steps back", times: []int64{500_000, 499_000, 380_000, 499_999, 500_000, 500_001}, back: 3, furthest: 2 * time.Minute},
		{name: "ten minutes", times: []int64{0, 600_000, 0, 600_001, 1}, back: 2, furthest: 10 * time.Minute},
		{name: "more than ten minutes", times: []int64{0, 600_001, 0}, problem: "t.csv, line 4: time is 10m0.001s before that of an earlier line, want lines sorted by time (they may be out of order by 10m0s)"},
		{name: "two servers, one behind the other", times: slices.Concat(steps(0, 1000, 500), steps(0, 1000, 500)), back: 499, furthest: 499 * time.Second},
		{name: "two files in one", times: twice, problem: "t.csv, line 102: time is 1h39m0s before"},
		{name: "backwards", times: steps(100*minute, -minute, 100), backwards: true},
		{name: "backwards, of one time in pairs", times: slices.Sorted(slices.Values(append(steps(-99*minute, minute, 100), steps(-99*minute, minute, 100)...))), backwards: true},
		{name: "backwards, two lines", times: []int64{60 * minute, 0}, backwards: true},
		{name: "backwards, in ten minutes", times: steps(100_000, -1000, 100), backwards: true},
		{name: "backwards, with steps", times: slices.Concat(steps(100*minute, -minute, 50), []int64{60 * minute}, steps(50*minute, -minute, 50)), back: 1, furthest: 9 * time.Minute, backwards: true},
		{name: "backwards, with a large step", times: slices.Concat(steps(100*minute, -minute, 50), []int64{90 * minute}), problem: "t.csv, line 52: time is 39m0s after that of an earlier line of a file that runs backwards"},
		{name: "backwards, of more lines than wait", times: steps(1<<17, -1, 1<<17), backwards: true},
		{name: "more lines than wait", times: append(steps(1, 1, 1<<17), 5), back: 1, furthest: 131_067 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.times[0] < 0 { // these are in pairs
				for i, at := range tt.times {
					tt.times[i] = -at
				}
			}
			for _, skip := range []bool{false, true} {
				r := NewReader(Options{Unit: Millis, SkipBad: skip}, File{"t.csv", strings.NewReader(file(tt.times...))})
				got, err := lines(r)
				if tt.problem != "" {
					if err == nil || !strings.HasPrefix(err.Error(), tt.problem) {
						t.Errorf("the error is %v, want %s", err, tt.problem)
					}
					continue
				}
				if err != nil || len(got) != len(tt.times) || r.Back != tt.back || r.Furthest != tt.furthest {
					t.Errorf("%d lines, %v, %d out of order by up to %v, want %d, %d by %v", len(got), err, r.Back, r.Furthest, len(tt.times), tt.back, tt.furthest)
				}
				if backwards := slices.Contains(r.Sources(), Source{Backwards: true}); backwards != tt.backwards {
					t.Errorf("backwards is %v, want %v", backwards, tt.backwards)
				}
				sorted := slices.IsSortedFunc(got, func(a, b Line) int { return int(a.Time - b.Time) })
				if late := tt.furthest > 10*time.Minute || len(tt.times) > 1<<17; !sorted && !late {
					t.Error("the lines are not in the order of time")
				}
				for i := range got[1:] { // of one time, the line that was written first is the first one
					if a, b := got[i], got[i+1]; a.Time == b.Time && number(a) < number(b) == tt.backwards {
						t.Fatalf("%s is before %s", a.User, b.User)
					}
				}
			}
		})
	}
}

// number returns the number of the user.
func number(line Line) (n int) {
	_, _ = fmt.Sscanf(line.User, "u%d", &n)
	return n
}
