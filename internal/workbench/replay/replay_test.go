package replay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit"
	. "github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// start is when the traffic of these tests begins, at the start of a day.
const start = 1_767_571_200_000 // 2026-01-05T00:00:00Z

// A moment is n requests of a user at a time after start.
type moment struct {
	at   time.Duration
	user string
	n    int
}

// open returns a reader of text. Its errors name it t.
func open(text string) *traffic.Reader { return read(strings.NewReader(text)) }

func read(text io.Reader) *traffic.Reader {
	return traffic.NewReader(traffic.Options{Unit: traffic.Millis}, traffic.File{Name: "t", Text: text})
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

func run(t testing.TB, p policy.Policy, text string) (*Replay, *Report) {
	t.Helper()
	r := &Replay{Activity: "act", Policy: p}
	return r, testkit.Must(r.Run(t.Context(), open(text)))(t)
}

func TestReport(t *testing.T) {
	traffic := record(moment{0, "u1", 3}, moment{0, "u2", 1}, moment{time.Second, "u3", 5}, moment{-time.Second, "u3", 2}, moment{time.Minute, "u2", 2}) +
		"1767571270000,u9,like\n1767571270000,u9,view\n"
	_, got := run(t, policy.Must("2/1m"), traffic)
	want := &Report{
		Activity: "act", Policy: "2/1m", Limit: 2, WindowMs: 60_000, From: start - 1000, To: start + 60_000,
		Requests: 13, Allowed: 9, Refused: 4, RefusedShare: 0.3077, LongestWaitMs: 60_000, Users: 3, HeldUp: 2,
		Worst: []User{
			{ID: "u3", Requests: 7, Allowed: 4, Refused: 3, LongestWaitMs: 59_000},
			{ID: "u1", Requests: 3, Allowed: 2, Refused: 1, LongestWaitMs: 60_000},
		},
		OutOfOrder: 2, OutOfOrderMs: 2000, OtherActivities: 2,
	}
	testkit.Same(t, "the report", want, got, cmpopts.IgnoreUnexported(Report{}, User{}))
}

// The order of the worst users does not depend on the order of a map.
func TestTheWorstOfManyUsers(t *testing.T) {
	var traffic []moment
	for i := range 606 {
		traffic = append(traffic, moment{0, fmt.Sprintf("u%03d", i), 1 + i%101})
	}
	_, got := run(t, policy.Must("1/1m"), record(traffic...))
	var worst []string
	for _, u := range got.Worst {
		worst = append(worst, fmt.Sprint(u.ID, " ", u.Refused))
	}
	if diff := cmp.Diff([]string{"u100 100", "u201 100", "u302 100", "u403 100", "u504 100"}, worst); diff != "" || got.HeldUp != 600 {
		t.Errorf("%d were held up, want 600; the worst (-want +got):\n%s", got.HeldUp, diff)
	}
}

func TestTrafficWithoutRequests(t *testing.T) {
	for text, want := range map[string]string{
		"time,user,activity\n":                     "t contains no requests, want CSV with a header and lines below it, JSON lines or a log",
		"time,user,activity\n1,u1,view\n1,u1,ac\n": `t has no request of the activity "act", only of ac, view`,
	} {
		r := &Replay{Activity: "act", Policy: policy.Must("2/1m")}
		if _, err := r.Run(t.Context(), open(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// endless is the traffic of a few users. It makes each line when it is read.
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

// Several shards decide the requests of their users at the same time, and drop what has expired. Each of
// the 50 users makes 24 requests a minute, for 166 minutes and 16 requests. 20 a minute are allowed. The
// lines in a queue differ at each look, so the least of the first half is compared with the least of the second.
func TestMemoryDoesNotGrowWithTheNumberOfLines(t *testing.T) {
	testkit.Long.Need(t)
	for limit, allowed := range map[string]int64{"20/1m": 166*50*20 + 801, "log 20/1m": 166*50*20 + 800} {
		var used []int64
		r := &Replay{Activity: "act", Policy: policy.Must(limit), Progress: func(int64) {
			used = append(used, testkit.HeapInUse())
		}}
		report, err := r.Run(t.Context(), read(&endless{last: 200_000}))
		if err != nil || report.Requests != 200_000 || report.Allowed != allowed || report.HeldUp != 50 || len(used) != 12 {
			t.Fatal(report, err, len(used))
		}
		if limit == "20/1m" { // a search keeps its copy of the requests in a file
			used = nil
			if got, err := r.Suggest(t.Context(), read(&endless{last: 200_000}), 999_000, spoolFile(t), nil); err != nil || got.Requests != 200_000 || len(used) != 12 {
				t.Fatal(got, err, len(used))
			}
		}
		if first, last := slices.Min(used[:6]), slices.Min(used[6:]); last > first+1<<20 {
			t.Errorf("%s: %d bytes are in use within %d lines, %d within %d", limit, first, 6<<14, last, 12<<14)
		}
	}
}

func TestReplayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &Replay{Activity: "act", Policy: policy.Must("20/1m"), Progress: func(int64) { cancel() }}
	if _, err := r.Run(ctx, read(&endless{last: 1 << 40})); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
}

// A replay decides as a guard does by the numbers of callers. A number that is too low refuses,
// and counts nothing.
func TestAReplayDecidesByNumbers(t *testing.T) {
	for _, text := range []string{"3/9s max 7", "4/9s max 9 cost 2", "log 3/9s max 7", "sliding 3/9s max 7", "bucket 3/9s burst 4 max 8", "writes: 3/9s max 7"} {
		t.Run(text, rapid.MakeCheck(func(t *rapid.T) {
			p := policy.Must(text)
			l, now := limiter(t)
			full, quick := Check(p, true), Check(p, false)
			for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
				*now += later(t)
				line, by := traffic.Line{Time: *now, User: "u1"}, p
				if rapid.Bool().Draw(t, "gives") {
					line.Limit = new(rapid.Int64Range(0, 10).Draw(t, "number"))
					by = p.With(func(string) (int64, bool) { return *line.Limit, true })
				}
				want := ratelimit.Decision{Reason: ratelimit.Limited}
				if _, low := by.TooLow(1); !low {
					var err error
					if want, err = l.Check(t.Context(), ratelimit.Request{UserID: "u1", Policy: by, Count: 1, ID: fmt.Sprint(i), Fresh: true}); err != nil {
						t.Fatal(err)
					}
				}
				got, fast := full(line), quick(line)
				if got.Allowed != want.Allowed || got.Wait != want.Wait && want.Limit > 0 || fast.Allowed != want.Allowed || fast.Wait != want.Wait || got.Limit == 0 {
					t.Fatalf("%+v, for a report %+v, want %+v", got, fast, want)
				}
			}
		}))
	}
}

// Only a user's only limit takes a number, and no subject's.
func TestWhichLimitsTakeNumbers(t *testing.T) {
	const csv = "time,user,activity,room,limit\n1767571200000,u1,act,r1,4\n1767571200000,u1,act,r1,4\n1767571200000,u1,act,r1,4\n1767571200000,u1,act,r1,0\n1767571200000,u1,act,r1,\n"
	o := traffic.Options{Unit: traffic.Millis, Numbers: true}
	for _, tt := range []struct {
		limit, room string
		want        map[string]int64 // refused, by what
	}{
		{"2/1m max 9", "", map[string]int64{"all": 2}},
		{"2/1m", "", map[string]int64{"all": 3}},
		{"a: 2/1m max 9, b: 8/1m", "", map[string]int64{"all": 3}},
		{"2/1m max 9", "9/1m", map[string]int64{"act": 2}},
		{"2/1m max 9", "2/1m max 9", map[string]int64{"act": 2, "room": 1}},
	} {
		r := Replay{Activity: "act", Policy: policy.Must(tt.limit)}
		if o.Subjects = nil; tt.room != "" {
			o.Subjects, r.Subjects = []string{"room"}, []Subject{{Name: "room", Policy: policy.Must(tt.room)}}
		}
		report := testkit.Must(r.Run(t.Context(), traffic.NewReader(o, traffic.File{Name: "t", Text: strings.NewReader(csv)})))(t)
		got := report.LimitedBy
		if got == nil {
			got = map[string]int64{"all": report.Refused}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || report.Numbered != 4 {
			t.Errorf("%s, room %s: %d with numbers, refused (-want +got):\n%s", tt.limit, tt.room, report.Numbered, diff)
		}
	}
}
