package replay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/replay"
)

// A moment is so many requests of a user at a time after start.
type moment struct {
	at   time.Duration
	user string
	n    int
}

func record(moments ...moment) string {
	var b strings.Builder
	b.WriteString("time,user,activity\n")
	for _, m := range moments {
		for range m.n {
			fmt.Fprintf(&b, "%d,%s,act\n", start+m.at.Milliseconds(), m.user)
		}
	}
	return b.String()
}

func policy(t testing.TB, kind string, burst int64, rates ...string) ratelimit.Policy {
	t.Helper()
	p, err := Policy(kind, rates, burst)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, p ratelimit.Policy, text string) (*Replay, *Report) {
	t.Helper()
	r := &Replay{Activity: "act", Policy: p}
	report, err := r.Run(t.Context(), NewTraffic("t", strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return r, report
}

// The same traffic under each policy: 10 at the end of a minute, 10 at the start
// of the next, and one every 10 s after that.
func TestEachPolicyOnADoubleBurst(t *testing.T) {
	traffic := []moment{{59 * time.Second, "u1", 10}, {60 * time.Second, "u1", 10}}
	for i := range 6 {
		traffic = append(traffic, moment{time.Duration(65+10*i) * time.Second, "u1", 1})
	}
	for name, tt := range map[string]struct {
		policy                    ratelimit.Policy
		allowed, refused, delayed int64
		wait                      time.Duration // the longest
		most                      int64         // let through in any minute
	}{
		"fixed":     {policy(t, "fixed", 0, "10/1m"), 20, 6, 0, 55 * time.Second, 20},
		"log":       {policy(t, "log", 0, "10/1m"), 10, 16, 0, 59 * time.Second, 10},
		"sliding":   {policy(t, "sliding", 0, "10/1m"), 16, 10, 0, time.Millisecond, 16}, // one of the last 10 less each 6 s
		"bucket":    {policy(t, "bucket", 0, "10/1m"), 16, 10, 0, 5 * time.Second, 16},
		"burst":     {policy(t, "bucket", 15, "10/1m"), 21, 5, 0, 5 * time.Second, 21},
		"reservoir": {policy(t, "reservoir", 0, "10/1m"), 20, 0, 6, 55 * time.Second, 20},
		"several":   {policy(t, "fixed", 0, "10/1m", "12/1d"), 12, 14, 0, 24*time.Hour - 60*time.Second, 12},
	} {
		r, got := run(t, tt.policy, record(traffic...))
		want := &Report{
			Activity: "act", Policy: tt.policy.String(), From: start + 59_000, To: start + 115_000,
			Requests: 26, Allowed: tt.allowed, Refused: tt.refused, Delayed: tt.delayed, LongestWaitMs: tt.wait.Milliseconds(), Users: 1, HeldUp: 1,
			Worst: []User{{ID: "u1", Requests: 26, Allowed: tt.allowed, Refused: tt.refused, Delayed: tt.delayed, LongestWaitMs: tt.wait.Milliseconds()}},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Report{}, User{}), cmpopts.IgnoreFields(Report{}, "Limit", "WindowMs", "RefusedShare")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		timeline, err := r.Timeline(t.Context(), NewTraffic("t", strings.NewReader(record(traffic...))), got, "")
		if err != nil || timeline.Densest.N != tt.most || timeline.Requests != 26 || timeline.Allowed != tt.allowed {
			t.Errorf("%s: the timeline has %+v, %v, want %d let through in a minute", name, timeline, err, tt.most)
		}
	}
}

func TestReport(t *testing.T) {
	traffic := record(moment{0, "u1", 3}, moment{0, "u2", 1}, moment{time.Second, "u3", 5}, moment{-time.Second, "u3", 2}, moment{time.Minute, "u2", 2}) +
		"1767571270000,u9,like\n1767571270000,u9,view\n"
	_, got := run(t, policy(t, "fixed", 0, "2/1m"), traffic)
	want := &Report{
		Activity: "act", Policy: "2 a minute, fixed window", Limit: 2, WindowMs: 60_000, From: start - 1000, To: start + 60_000,
		Requests: 13, Allowed: 9, Refused: 4, RefusedShare: 0.3077, LongestWaitMs: 60_000, Users: 3, HeldUp: 2,
		Worst: []User{
			{ID: "u3", Requests: 7, Allowed: 4, Refused: 3, LongestWaitMs: 59_000},
			{ID: "u1", Requests: 3, Allowed: 2, Refused: 1, LongestWaitMs: 60_000},
		},
		OutOfOrder: 2, OutOfOrderMs: 2000, OtherActivities: 2,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Report{}, User{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The worst are the same whatever order users come in, of however many.
func TestTheWorstOfManyUsers(t *testing.T) {
	var traffic []moment
	for i := range 606 {
		traffic = append(traffic, moment{0, fmt.Sprintf("u%03d", i), 1 + i%101})
	}
	_, got := run(t, policy(t, "fixed", 0, "1/1m"), record(traffic...))
	var worst []string
	for _, u := range got.Worst {
		worst = append(worst, fmt.Sprint(u.ID, " ", u.Refused))
	}
	if diff := cmp.Diff([]string{"u100 100", "u201 100", "u302 100", "u403 100", "u504 100"}, worst); diff != "" || got.HeldUp != 600 {
		t.Errorf("%d were held up, want 600; the worst (-want +got):\n%s", got.HeldUp, diff)
	}
}

func TestWhatCannotBeReplayed(t *testing.T) {
	for text, want := range map[string]string{
		"time,user,activity\n": "t has no request in it, want lines of time,user,activity below that header, or JSON objects with these names",
		"":                     "t has no request in it, want",
		"time,user,activity\n1,u1,view\n1,u1,ac\n2,u2,view\n":  `t has no request of the activity "act", but of ac, view`,
		record(moment{0, "u1", 1}) + "1767571200000,u1\n":      "t, line 3: it has 2 fields",
		record(moment{0, "u1", 1}) + "1767571000000,u1,view\n": "t, line 3: time is 3m20s before an earlier line's",
	} {
		r := &Replay{Activity: "act", Policy: policy(t, "fixed", 0, "2/1m")}
		if _, err := r.Run(t.Context(), NewTraffic("t", strings.NewReader(text))); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A record of any age is decided alike, also before 2020, from when a log counts.
func TestOldTraffic(t *testing.T) {
	for _, kind := range []string{"fixed", "log", "sliding", "bucket", "reservoir"} {
		old := "time,user,activity\n" + strings.Repeat("0,u1,act\n", 3) + "86400000,u1,act\n" + "1262304000000,u1,act\n"
		if _, got := run(t, policy(t, kind, 0, "2/1h"), old); got.Allowed != 4 || got.Refused+got.Delayed != 1 {
			t.Errorf("%s: %d of 5 allowed, want 4", kind, got.Allowed)
		}
	}
	old := "time,user,activity\n" + strings.Repeat("1262390399000,u1,act\n", 3) + strings.Repeat("1262390400000,u1,act\n", 3)
	r := &Replay{Activity: "act", Policy: ratelimit.Several{
		{Name: "log", Policy: ratelimit.SlidingLog{Limit: 4, Window: time.Hour}}, {Name: "day", Policy: ratelimit.FixedWindow{Limit: 2, Window: 24 * time.Hour}},
	}}
	if got, err := r.Run(t.Context(), NewTraffic("t", strings.NewReader(old))); err != nil || got.Allowed != 4 || got.LongestWaitMs != 24*3600*1000 {
		t.Errorf("%+v, %v, want 2 of each day", got, err)
	}
}

func TestPolicy(t *testing.T) {
	for _, tt := range []struct {
		kind  string
		burst int64
		rates []string
		want  string // the policy in words, or the error
	}{
		{"fixed", 0, []string{"20/1m"}, "20 a minute, fixed window"},
		{"log", 0, []string{"100/12h"}, "100 in 12 hours, sliding log"},
		{"sliding", 0, []string{"50/1h"}, "50 an hour, sliding window"},
		{"bucket", 0, []string{"1/5s"}, "one every 5 s"},
		{"bucket", 0, []string{"10/1m"}, "10 at once, then 10 a minute"},
		{"bucket", 15, []string{"10/1m"}, "15 at once, then 10 a minute"},
		{"reservoir", 0, []string{"10/10s"}, "10 in 10 s, the rest delayed by up to 15 minutes"},
		{"fixed", 0, []string{"10/1m", "200/1d"}, "10 a minute, fixed window; and 200 a day, fixed window"},
		{"fixed", 0, []string{"10"}, `rate is "10", want actions`},
		{"leaky", 0, []string{"10/1m"}, `policy is "leaky", want fixed, log, sliding, bucket or reservoir`},
		{"fixed", 15, []string{"10/1m"}, "a burst is of a bucket, and the policy is fixed"},
		{"bucket", -1, []string{"10/1m"}, "burst is -1, want at least 1"},
		{"bucket", 0, []string{"7/1m"}, "window is 1m0s, want a multiple of 7 ms"},
		{"log", 0, []string{"101/1m"}, "limit is 101, want at most 100"},
		{"fixed", 0, []string{"10/1m", "20/1m"}, `limit "minute" is unnamed, or named as another`},
		{"sliding", 0, []string{"10/1m", "20/1h"}, `limit "minute": it is a ratelimit.SlidingWindow, want`},
		{"fixed", 0, nil, "0 limits on one activity, want 2 to 8"},
	} {
		p, err := Policy(tt.kind, tt.rates, tt.burst)
		got := fmt.Sprint(err)
		if err == nil {
			got = p.String()
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s of %v with burst %d is %q, want %q", tt.kind, tt.rates, tt.burst, got, tt.want)
		}
	}
}

// endless is traffic of a few users, made as it is read.
type endless struct {
	lines, last int64
	left        strings.Reader
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left.Len() == 0 {
		if e.lines++; e.lines > e.last {
			return 0, io.EOF
		}
		line := fmt.Sprintf("%d,u%d,act\n", start+e.lines*50, e.lines%50)
		if e.lines == 1 {
			line = "time,user,activity\n" + line
		}
		e.left.Reset(line)
	}
	return e.left.Read(p)
}

// Memory does not grow with the number of lines.
func TestMemoryIsFlat(t *testing.T) {
	for _, kind := range []string{"fixed", "log"} {
		var heap []uint64
		r := &Replay{Activity: "act", Policy: policy(t, kind, 0, "20/1m"), Progress: func(int64) {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap = append(heap, m.HeapAlloc)
		}}
		report, err := r.Run(t.Context(), NewTraffic("t", &endless{last: 100_000}))
		if err != nil || report.Requests != 100_000 || len(heap) < 6 {
			t.Fatal(report, err, len(heap))
		}
		if first, last := heap[2], heap[len(heap)-1]; last > first+1<<20 {
			t.Errorf("%s: %d bytes are in use after %d lines, %d after %d", kind, first, 3<<14, last, len(heap)<<14)
		}
	}
}

func TestReplayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &Replay{Activity: "act", Policy: policy(t, "fixed", 0, "20/1m"), Progress: func(int64) { cancel() }}
	if _, err := r.Run(ctx, NewTraffic("t", &endless{last: 1 << 40})); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
}
