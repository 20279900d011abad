package replay_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards/internal/policy"
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
	report, err := r.Run(t.Context(), open(text))
	if err != nil {
		t.Fatal(err)
	}
	return r, report
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
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Report{}, User{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
