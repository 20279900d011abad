package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/plot"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// servePicture draws the last requests of a user for one activity, as guards
// replay --plot does.
func (c *Console) servePicture(w http.ResponseWriter, r *http.Request) {
	k := key{r.URL.Query().Get("user"), r.URL.Query().Get("activity")}
	c.mu.Lock()
	requests := c.history.of(k)
	var limit policy.Policy
	if known := c.windows.find(k); known != nil {
		if a, ok := c.activity(known.function, k.activity); ok {
			limit = a.For(known.asked.Tier)
		}
	}
	c.mu.Unlock()
	if len(requests) == 0 || limit.IsZero() {
		http.Error(w, "Nothing to draw yet: no request of this user for this activity was counted or refused since the start or the last reset.", http.StatusNotFound)
		return
	}
	drawn, err := timelines(r.Context(), k, limit, requests)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The picture has its style inside. Everything else stays forbidden.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "image/svg+xml")
	_ = plot.SVG(w, drawn...)
}

// timelines replays requests.
func timelines(ctx context.Context, k key, limit policy.Policy, requests []decided) ([]*replay.Timeline, error) {
	record, err := asCSV(requests)
	if err != nil {
		return nil, err
	}
	read := func() *traffic.Reader {
		return traffic.NewReader(traffic.Options{Unit: traffic.Millis},
			traffic.File{Name: "the last requests", Text: bytes.NewReader(record)})
	}
	r := replay.Replay{Activity: k.activity, Policy: limit}
	reports, err := r.Compare(ctx, read())
	if err != nil {
		return nil, err
	}
	return r.Timelines(ctx, read(), reports, k.user)
}

// asCSV returns requests as replay reads them, in the order of time. The
// clock may have been moved back. A request for several actions is one line for
// each action, and at most mostRequests lines remain.
func asCSV(requests []decided) ([]byte, error) {
	slices.SortStableFunc(requests, func(a, b decided) int { return cmp.Compare(a.at, b.at) })
	var lines [][]string
	for _, d := range requests {
		for range min(d.count, mostRequests) {
			lines = append(lines, []string{strconv.FormatInt(d.at, 10), d.user, d.activity})
		}
		lines = last(lines, mostRequests)
	}
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(append([][]string{{"time", "user", "activity"}}, lines...))
	return b.Bytes(), err
}

// activity returns an activity of a guard.
func (c *Console) activity(function, name string) (limits.Activity, bool) {
	for _, g := range c.Guards {
		if g.Name == function {
			return g.Activity(name)
		}
	}
	return limits.Activity{}, false
}
