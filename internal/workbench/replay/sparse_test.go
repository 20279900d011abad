package replay_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/workbench/replay"
)

// sparse returns the timeline of u1 without the windows that got no request.
func sparse(t *testing.T, p policy.Policy, moments ...moment) *Timeline {
	t.Helper()
	text := record(moments...)
	r, report := run(t, p, text)
	for _, m := range moments {
		r.Times = append(r.Times, start+m.at.Milliseconds())
	}
	timelines, err := r.Timelines(t.Context(), open(text), []*Report{report}, "u1")
	if err != nil {
		t.Fatal(err)
	}
	return timelines[0]
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
	if diff := cmp.Diff(steps, got.Panels[0].Steps); diff != "" {
		t.Errorf("the count (-want +got):\n%s", diff)
	}
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
