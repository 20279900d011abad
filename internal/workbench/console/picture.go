package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/plot"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

const (
	maxShown    = 100    // answers that the page can show
	maxRequests = 10_000 // requests that a picture can show
)

// A history keeps the last calls. Its size is bounded.
type history struct {
	n        int64     // number of calls so far
	calls    []call    // the last ones, oldest first; the newest has the number n
	requests []decided // oldest first
}

// A decided request is what replay needs of a call.
type decided struct {
	key
	group     string
	at, count int64
	id        string // the id in its receipt; empty if there is none
}

// A key names what is counted.
type key struct{ user, activity string }

// add adds one part of a call. What another part has refused is no request of this one. A reset
// forgets the requests that it cleared, in the whole group. A release forgets the actions that it
// gave back. Package replay knows neither resets nor releases. A release that is too late, or
// repeated, gives nothing back. A renewal moves its actions, so the picture shows them from then on.
func (h *history) add(c call, p part, group string) {
	k, r, d := p.key, c.request, c.answer
	switch {
	case r.Op == guards.Check && c.counts() && d.Reason != guards.Duplicate && (d.Allowed || subjectOf(r, d.LimitedBy) == p.subject): // a request as replay knows it
		h.requests = last(append(h.requests, decided{k, group, c.at, r.Count, d.RequestID}), maxRequests)
	case c.err != "":
	case r.Op == guards.Reset:
		h.requests = slices.DeleteFunc(h.requests, func(d decided) bool {
			return d.key == k || group != "" && d.group == group && d.user == p.user
		})
	case r.Op == guards.Renew && d.Allowed || r.Op == guards.Release && c.gaveBack():
		i := slices.IndexFunc(h.requests, func(d decided) bool { return d.key == k && d.id == r.RequestID && d.id != "" })
		switch {
		case i < 0:
			return
		case r.Op == guards.Renew:
			h.requests[i].at = c.at
			return
		}
		if h.requests[i].count -= r.Count; h.requests[i].count <= 0 {
			h.requests = slices.Delete(h.requests, i, i+1)
		}
	}
}

// last drops elements at the start, so that at most n remain.
func last[E any](s []E, n int) []E { return slices.Delete(s, 0, max(0, len(s)-n)) }

// after returns the calls with a number above n, and the number of the first.
func (h *history) after(n int64) ([]call, int64) {
	first := h.n - int64(len(h.calls)) + 1
	skip := min(max(0, n+1-first), int64(len(h.calls)))
	return slices.Clone(h.calls[skip:]), first + skip
}

// servePicture draws a user's last requests, as guards replay --plot does.
func (c *Console) servePicture(w http.ResponseWriter, r *http.Request) {
	k := key{r.URL.Query().Get("user"), r.URL.Query().Get("activity")}
	c.mu.Lock()
	requests := slices.DeleteFunc(slices.Clone(c.history.requests), func(d decided) bool { return d.key != k })
	var limit policy.Policy
	if known := c.windows.find(k); known != nil {
		limit = c.limit(known)
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

func timelines(ctx context.Context, k key, limit policy.Policy, requests []decided) ([]*replay.Timeline, error) {
	lines := linesOf(requests)
	read := func() *traffic.Reader { return traffic.NewKnown("the last requests", lines) }
	r := replay.Replay{Activity: k.activity, Policy: limit}
	for _, d := range requests { // the clock can have been moved by hours
		r.Times = append(r.Times, d.at)
	}
	reports, err := r.Compare(ctx, read())
	if err != nil {
		return nil, err
	}
	return r.Timelines(ctx, read(), reports, k.shown())
}

// linesOf returns requests as replay reads them, in the order of time. The
// clock may have been moved back. A request for several actions is one line for
// each action, and at most maxRequests lines remain.
func linesOf(requests []decided) (lines []traffic.Line) {
	slices.SortStableFunc(requests, func(a, b decided) int { return cmp.Compare(a.at, b.at) })
	for _, d := range requests {
		for range min(d.count, maxRequests) {
			lines = append(lines, traffic.Line{Time: d.at, User: d.shown(), Activity: d.activity})
		}
		lines = last(lines, maxRequests)
	}
	return lines
}

// group returns the group of an activity; empty: it counts alone.
func (c *Console) group(activity string) string {
	_, a, _ := c.Guards.Activity(activity)
	return a.Group
}

// limit returns the limit of a window, as the code has it. It returns the zero
// Policy if the code has none.
func (c *Console) limit(w *window) policy.Policy {
	g, _ := c.Guards.Named(w.function)
	a, _ := g.Activity(w.activity)
	return a.Part(w.subject).For(w.asked.Tier)
}
