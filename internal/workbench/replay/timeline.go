package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A Timeline is the result for one user during a period, in detail. It has the
// data for a picture, and its size is bounded. Times are Unix milliseconds.
type Timeline struct {
	Activity string
	Policy   string // its text form
	User     string
	From, To int64
	Whole    bool // the period contains all requests of the user

	Requests, Allowed, Refused, Delayed int64 // requests in the period

	Panels  []Panel // one for each limit
	Densest Densest
}

// A Panel is one limit.
type Panel struct {
	Name   string // the limit's name, if there are several; else empty
	Limit  int64
	Window int64 // milliseconds between two borders; 0: the limit has no windows of the clock, or too many for a picture
	Steps  []Step
	Marks  []Mark
}

// A Step means that from the time At on, Used actions count.
type Step struct{ At, Used int64 }

// A Mark is a request, or several requests that look the same in a picture.
type Mark struct {
	At   int64
	Kind Kind
	Used int64 // actions that count after the request; for Runs, its place in the window
	N    int64 // number of requests
}

// Kind is what a mark stands for: the outcome of a request, or a delayed
// request that runs.
type Kind uint8

// The kinds. A delayed request has two marks: Delayed when it came, and Runs
// when its place comes up.
const (
	Allowed Kind = iota
	Refused
	Delayed
	Runs
)

// Densest is the stretch of time with the most allowed requests. It shows
// whether more than Limit of them came within one Window. A delayed request
// counts at the time when its place comes up.
type Densest struct {
	Window   int64 // of the limit with the shortest window, in milliseconds
	Limit    int64 // of that limit
	N        int64 // the most requests in any time as long as Window; 0: unknown
	From, To int64 // times of the first and the last of these requests
}

const (
	mostWindows = 12 // in a picture; more would be too narrow to read
	before      = 4  // windows in a picture before the worst one

	// mostBorders is how many windows of a panel have borders. A limit with more
	// windows in the picture has none, as in a comparison of 10/10s with 200/1d.
	mostBorders = 48

	// columns and levels are the resolution of a picture: two marks in the same
	// column and on the same level look the same.
	columns, levels = 480, 70

	mostRuns = 1 << 20 // allowed requests; with more, the densest time stays unknown
)

// Timelines decides the requests of one user once more, under r.Policy and each
// other policy. All timelines show the same period. An empty user means the
// user whom r.Policy held up most often. T must read the same traffic again
// from its start, and reports must be what Compare returned for it.
func (r *Replay) Timelines(ctx context.Context, t *traffic.Reader, reports []*Report, user string, others ...policy.Policy) ([]*Timeline, error) {
	u, ok := reports[0].user(user)
	if !ok {
		return nil, fmt.Errorf("%s has no request of the user %+.40q", t.Name(), user)
	}
	last := u.last
	for _, report := range reports {
		last = max(last, report.byID[u.ID].lastRun)
	}
	shown := u.period(reports[0].window, last)
	var drawings []*drawing
	for _, p := range slices.Concat([]policy.Policy{r.Policy}, others) {
		drawings = append(drawings, newDrawing(r.Activity, u.ID, p, shown))
	}
	err := r.each(ctx, t, func(line traffic.Line) error {
		if line.Activity != r.Activity || line.User != u.ID || line.Time >= shown.to {
			return nil
		}
		for _, d := range drawings {
			d.sample(line.Time)
			d.add(line, d.decider.check(line))
		}
		return nil
	})
	var timelines []*Timeline
	for _, d := range drawings {
		d.sample(d.To)
		d.Densest.find(d.runs)
		timelines = append(timelines, d.Timeline)
	}
	return timelines, err
}

// A period is the time that a picture shows, in Unix milliseconds.
type period struct {
	from, to int64
	whole    bool // it contains all requests of the user
}

// period returns the time that a picture shows. That is the time of all of the
// user's requests or, if they last too long, mostWindows windows around the
// worst one. Last is when the last of the requests comes or runs.
func (u *User) period(window, last int64) period {
	from, to := u.first/window*window, (last/window+1)*window
	if took := last - u.first; took > 0 && to-from > 4*took { // else most of the window would be empty
		return period{max(0, u.first-took/10-1), last + took/10 + 1, true}
	}
	if to-from <= mostWindows*window {
		return period{from, to, true}
	}
	from = max(from, (u.worst.window-before)*window)
	return period{from, from + mostWindows*window, u.first >= from && u.last < from+mostWindows*window}
}

// Borders returns the borders of the limit's windows in a period, both ends
// included.
func (p *Panel) Borders(from, to int64) (all []int64) {
	if p.Window == 0 {
		return nil
	}
	for at := (from + p.Window - 1) / p.Window * p.Window; at <= to; at += p.Window {
		all = append(all, at)
	}
	return all
}
