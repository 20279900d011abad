package replay_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	. "github.com/cric-talk/guards/internal/workbench/replay"
)

func timeline(t testing.TB, p policy.Policy, user, text string) *Timeline {
	t.Helper()
	r, report := run(t, p, text)
	return testkit.Must(r.Timelines(t.Context(), open(text), []*Report{report}, user))(t)[0]
}

// minutes returns the windows of a minute that begin in a period.
func minutes(from, to int64) (all []policy.Window) {
	for ; from <= to; from += 60_000 {
		all = append(all, policy.Window{Key: from / 60_000, Start: from, End: from + 60_000})
	}
	return all
}

func TestTimeline(t *testing.T) {
	const ms = start
	got := timeline(t, policy.Must("2/1m"), "", record(
		moment{10 * time.Second, "u1", 1}, moment{15 * time.Second, "u2", 1}, moment{20 * time.Second, "u1", 3},
		moment{61 * time.Second, "u1", 1}, moment{59 * time.Second, "u1", 1}, // out of order
	))
	want := &Timeline{
		Activity: "act", Policy: "2/1m", User: "u1", From: ms, To: ms + 120_000, Whole: true,
		Requests: 6, Allowed: 3, Refused: 3,
		Panels: []Panel{{
			Limit: 2, Windows: minutes(ms-60_000, ms+120_000),
			Steps: []Step{{ms, 0}, {ms + 10_000, 1}, {ms + 20_000, 2}, {ms + 60_000, 0}, {ms + 61_000, 1}},
			Marks: []Mark{
				{ms + 10_000, Allowed, 1, 1}, {ms + 20_000, Allowed, 2, 1}, {ms + 20_000, Refused, 2, 2},
				{ms + 59_000, Refused, 2, 1}, {ms + 61_000, Allowed, 1, 1},
			},
		}},
		Densest: Densest{Window: 60_000, Limit: 2, N: 3, From: ms + 10_000, To: ms + 61_000},
	}
	testkit.Same(t, "the timeline", want, got)
}

// A delayed request has two marks: when it came, and when it runs. Of several limits, the panel of
// the queue has them.
func TestTimelineOfDelayedRequests(t *testing.T) {
	const ms = start
	for text, queue := range map[string]int{"reservoir 2/10s ahead 15m": 0, "day: 200/1d, queue: reservoir 2/10s ahead 15m": 1} {
		got := timeline(t, policy.Must(text), "", record(moment{time.Second, "u1", 5}))
		want := []Mark{
			{ms + 1000, Allowed, 1, 1}, {ms + 1000, Allowed, 2, 1}, {ms + 10_000, Runs, 1, 1}, {ms + 1000, Delayed, 2, 3},
			{ms + 10_000, Runs, 2, 1}, {ms + 20_000, Runs, 1, 1},
		}
		if diff := cmp.Diff(want, got.Panels[queue].Marks); diff != "" || got.To != ms+30_000 || got.Delayed != 3 {
			t.Errorf("%s: %d delayed until %d; marks (-want +got):\n%s", text, got.Delayed, got.To, diff)
		}
		if got.Densest.N != 4 || got.Densest.From != ms+1000 || got.Densest.To != ms+10_000 {
			t.Errorf("%s: the densest time is %+v, want 4 in 9 s", text, got.Densest)
		}
	}
}

// Limits with windows of the clock have borders, even if there are several.
func TestBordersOfPanels(t *testing.T) {
	got := timeline(t, policy.Must("fixed: 9/1m, log: log 9/1h, bucket: bucket 9/90s, sliding: sliding 9/2m, queue: reservoir 9/10s ahead 1m, day: 9/day in Europe/Berlin"), "", record(moment{0, "u1", 1}))
	windows := map[string]int64{}
	for _, p := range got.Panels {
		windows[p.Name] = 0
		if len(p.Windows) > 0 {
			windows[p.Name] = p.Windows[0].End - p.Windows[0].Start
		}
	}
	testkit.Same(t, "windows", map[string]int64{"fixed": 60_000, "log": 0, "bucket": 0, "sliding": 120_000, "queue": 10_000, "day": 86_400_000}, windows)
}

// A panel whose limit has too many windows in the picture shows no borders.
func TestBordersOfAComparison(t *testing.T) {
	text := record(moment{0, "u1", 1}, moment{9 * 24 * time.Hour, "u1", 1})
	r, report := run(t, policy.Must("200/1d"), text)
	timelines, err := r.Timelines(t.Context(), open(text), []*Report{report, report}, "", policy.Must("10/10s"))
	if err != nil || len(timelines[0].Panels[0].Windows) != 12 || len(timelines[1].Panels[0].Windows) != 0 {
		t.Errorf("%+v, %v, want borders for the days alone", timelines, err)
	}
}

// A picture shows all requests of a user, or the windows around the worst one.
func TestPeriod(t *testing.T) {
	const minute = 60_000
	busy := func(last time.Duration) string {
		var traffic []moment
		for at := time.Duration(0); at <= last; at += time.Minute {
			n := 1
			if at == 30*time.Minute {
				n = 9
			}
			traffic = append(traffic, moment{at, "u1", n})
		}
		return record(traffic...)
	}
	for name, tt := range map[string]struct {
		policy   policy.Policy
		traffic  string
		from, to int64
		whole    bool
	}{
		"12 windows":          {policy.Must("2/1m"), busy(11*time.Minute + 30*time.Second), 0, 12 * minute, true},
		"13 windows":          {policy.Must("2/1m"), busy(12 * time.Minute), 0, 12 * minute, false},
		"the worst":           {policy.Must("2/1m"), busy(time.Hour), 26 * minute, 38 * minute, false},
		"of a log":            {policy.Must("log 2/1m"), busy(time.Hour), 26 * minute, 38 * minute, false},
		"one request":         {policy.Must("2/1m"), record(moment{90 * time.Second, "u1", 1}), minute, 2 * minute, true},
		"one moment":          {policy.Must("2/12h"), record(moment{90 * time.Second, "u1", 9}), 0, 12 * 60 * minute, true},
		"a while of a window": {policy.Must("2/12h"), record(moment{time.Hour, "u1", 5}, moment{2 * time.Hour, "u1", 5}), 54*minute - 1, 126*minute + 1, true},
	} {
		got := timeline(t, tt.policy, "", tt.traffic)
		if got.From != start+tt.from || got.To != start+tt.to || got.Whole != tt.whole {
			t.Errorf("%s: from %d to %d, whole: %v, want %d to %d, %v", name, got.From-start, got.To-start, got.Whole, tt.from, tt.to, tt.whole)
		}
	}
}

// Without a user, the picture is of the one who was held up most, or else of the busiest one.
func TestTimelineOfTheBusiestUser(t *testing.T) {
	if got := timeline(t, policy.Must("9/1m"), "", record(moment{0, "u2", 4}, moment{0, "u1", 9}, moment{0, "u3", 1})); got.User != "u1" || got.Requests != 9 {
		t.Errorf("%d requests of %s, want 9 of u1", got.Requests, got.User)
	}
}

// The numbers of steps and marks are bounded. Each request is in a mark, and the curve still
// shows each window's lowest and highest count.
func TestATimelineIsBounded(t *testing.T) {
	var traffic, bursts []moment
	for i := range 12_000 {
		traffic = append(traffic, moment{time.Duration(i) * time.Millisecond, "u1", 1})
		if i%10 == 0 {
			bursts = append(bursts, moment{time.Duration(i) * 10 * time.Millisecond, "u1", 5})
		}
	}
	for _, limit := range []string{"100/1m", "sliding 100/1m", "bucket 100/1m", "log 100/1m", "reservoir 100/1m ahead 15m"} {
		marks, requests := timeline(t, policy.Must(limit), "", record(bursts...)).Panels[0].Marks, int64(0)
		for _, m := range marks {
			if m.Kind != Runs {
				requests += m.N
			}
		}
		if len(marks) > 1500 || requests != 6000 {
			t.Errorf("%s: %d marks for %d of 6,000 requests", limit, len(marks), requests)
		}
	}
	got := timeline(t, policy.Must("300/1s"), "", record(traffic...))
	steps := got.Panels[0].Steps
	if n := len(steps); n > 4*480 {
		t.Errorf("%d steps, want at most 4 for each of 480 columns", n)
	}
	counts := map[int64][]int64{} // of each second
	for _, s := range steps {
		counts[s.At/1000] = append(counts[s.At/1000], s.Used)
	}
	for second := range int64(12) {
		if got := counts[start/1000+second]; slices.Min(got) > 1 || slices.Max(got) != 300 {
			t.Errorf("second %d: the count is between %d and %d, want 0 or 1 to 300", second, slices.Min(got), slices.Max(got))
		}
	}
}

// sparse returns the timeline of u1 without the windows that got no request.
func sparse(t *testing.T, p policy.Policy, moments ...moment) *Timeline {
	t.Helper()
	text := record(moments...)
	r, report := run(t, p, text)
	for _, m := range moments {
		r.Times = append(r.Times, start+m.at.Milliseconds())
	}
	return testkit.Must(r.Timelines(t.Context(), open(text), []*Report{report}, "u1"))(t)[0]
}

// Somebody moved the clock by 12 hours. A picture leaves them out.
func TestWindowsWithoutRequestsTakeNoRoom(t *testing.T) {
	const ms, hours = start, 12 * 3600_000
	got := sparse(t, policy.Must("2/1m"), moment{10 * time.Second, "u1", 3}, moment{12*time.Hour + 20*time.Second, "u1", 1}, moment{12*time.Hour + 70*time.Second, "u1", 1})
	if diff := cmp.Diff([]Cut{{ms + 60_000, ms + hours}}, got.Cuts); diff != "" || got.From != ms || got.To != ms+hours+120_000 || !got.Whole {
		t.Errorf("from %d to %d, whole %v, cuts (-want +got):\n%s", got.From, got.To, got.Whole, diff)
	}
	if got.Allowed != 4 || got.Refused != 1 || len(got.Panels[0].Marks) != 5 {
		t.Errorf("%d allowed, %d refused, marks %v", got.Allowed, got.Refused, got.Panels[0].Marks)
	}
	for _, w := range got.Panels[0].Windows[1:] {
		if w.Start > ms && w.Start < ms+hours {
			t.Errorf("the picture has the empty window %v", w)
		}
	}
	steps := []Step{{ms, 0}, {ms + 10_000, 1}, {ms + 10_000, 2}, {ms + hours - 1, 0}, {ms + hours + 20_000, 1}, {ms + hours + 60_000, 0}, {ms + hours + 70_000, 1}}
	testkit.Same(t, "the count", steps, got.Panels[0].Steps)
	for at, want := range map[int64]int64{ms: 0, ms + 30_000: 30_000, ms + 60_000: 60_000, ms + 3600_000: 60_000, ms + hours: 60_000, ms + hours + 5000: 65_000} {
		if shown := got.Shown(at); shown != want {
			t.Errorf("%d ms after the start are shown after %d ms, want %d", at-ms, shown, want)
		}
	}
}

// With more than 12 windows, the picture has those around the worst one. Without empty ones,
// it is the same as ever.
func TestASparsePictureIsBounded(t *testing.T) {
	var moments []moment
	for hour := range 20 {
		n := 1
		if hour == 15 {
			n = 9
		}
		moments = append(moments, moment{time.Duration(hour) * time.Hour, "u1", n})
	}
	got := sparse(t, policy.Must("2/1m"), moments...)
	if got.Whole || got.Requests != 9+8 || got.Refused != 7 || len(got.Cuts) != 8 || got.From != start+11*3600_000 {
		t.Errorf("%d requests, %d refused, whole %v, from %d, cuts %v", got.Requests, got.Refused, got.Whole, got.From-start, got.Cuts)
	}
	for _, text := range []string{"log 2/1m", "bucket 2/1m", "sliding 2/1m", "minute: 2/1m, day: 90/day"} {
		if got := sparse(t, policy.Must(text), moments...); len(got.Cuts) == 0 || got.Requests == 0 {
			t.Errorf("%s: cuts %v", text, got.Cuts)
		}
	}
	near := []moment{{10 * time.Second, "u1", 1}, {70 * time.Second, "u1", 1}}
	if got, want := sparse(t, policy.Must("2/1m"), near...), timeline(t, policy.Must("2/1m"), "", record(near...)); !cmp.Equal(got, want) {
		t.Errorf("without empty windows (-want +got):\n%s", cmp.Diff(want, got))
	}
}
