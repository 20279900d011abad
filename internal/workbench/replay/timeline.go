package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A Timeline is the result for one user during a period, in detail. It has the
// data for a picture, and its size is bounded. Times are Unix milliseconds.
type Timeline struct {
	Activity string
	Policy   string // its text form
	User     string
	From, To int64
	Whole    bool  // the period contains all requests of the user
	Cuts     []Cut // in the period, in ascending order; none unless Replay.Times is set

	Requests, Allowed, Refused, Delayed int64 // requests in the period

	Panels  []Panel // one for each limit
	Densest Densest
}

// A Panel is one limit.
type Panel struct {
	Name    string // the limit's name, if there are several; else empty
	Limit   int64
	Windows []policy.Window // those in the picture and the one before; none if the limit has no windows, or too many for a picture
	Steps   []Step
	Marks   []Mark
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
	maxWindows = 12 // in a picture; more would be too narrow to read
	before     = 4  // windows in a picture before the worst one

	// maxBorders is how many windows of a panel have borders. A limit with more
	// windows in the picture has none, as in a comparison of 10/10s with 200/1d.
	maxBorders = 48

	// columns and levels are the resolution of a picture: two marks in the same
	// column and on the same level look the same.
	columns, levels = 480, 70

	maxRuns = 1 << 20 // allowed requests; with more, the densest time stays unknown
)

// Timelines decides the requests of one user once more, under r.Policy and each
// other policy. All timelines show the same period. An empty user means the
// user that r.Policy held up most often or, if it held up nobody, the busiest
// one. T must read the same traffic again from its start, and reports must be
// what Compare returned for it.
func (r *Replay) Timelines(ctx context.Context, t *traffic.Reader, reports []*Report, user string, others ...policy.Policy) ([]*Timeline, error) {
	u := reports[0].byID[cmp.Or(user, reports[0].first)]
	if u == nil {
		return nil, fmt.Errorf("%s has no request of the user %+.40q", t.Name(), user)
	}
	last := u.last
	for _, report := range reports {
		last = max(last, report.byID[u.ID].lastRun)
	}
	shown := Timeline{Activity: r.Activity, User: u.ID}
	if r.Policy.Queues() || !shown.sparse(reports[0].ruler, r.Times, u) {
		shown.From, shown.To, shown.Whole = u.period(reports[0].ruler, last)
	}
	var drawings []*drawing
	for _, p := range slices.Concat([]policy.Policy{r.Policy}, others) {
		drawings = append(drawings, newDrawing(shown, p))
	}
	err := r.each(ctx, t, func(line traffic.Line) error {
		if line.Activity != r.Activity || line.User != u.ID || line.Time >= shown.To {
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

// period returns the time that a picture shows, and whether it contains all
// requests of the user. That is the time of all of these requests or, if they
// last too long, maxWindows windows around the worst one. Last is when the last
// of the requests comes or runs.
func (u *User) period(r ruler, last int64) (from, to int64, whole bool) {
	from, to = r.at(u.first).Start, r.at(last).End
	if took := last - u.first; took > 0 && to-from > 4*took { // else most of the window would be empty
		return max(0, u.first-took/10-1), last + took/10 + 1, true
	}
	if to <= r.after(from, maxWindows) {
		return from, to, true
	}
	worst := u.worst.window
	for range before {
		worst = r.at(max(0, worst.Start-1))
	}
	from = max(from, worst.Start)
	to = r.after(from, maxWindows)
	return from, to, u.first >= from && u.last < to
}

// after returns when the n-th window after now begins.
func (r ruler) after(now int64, n int) int64 {
	for range n {
		now = r.at(now).End
	}
	return now
}

// A drawing is a timeline that is being made.
type drawing struct {
	*Timeline
	decider *decider
	due     []int64 // times to read the count at, sorted
	cells   map[cell]int
	runs    []int64 // times of allowed requests
	queue   int     // the panel of the limit that gives places in later windows; -1: none does
}

// A cell is a place in a picture. It holds one mark.
type cell struct {
	panel         int
	kind          Kind
	column, level int64
}

// newDrawing returns the timeline of p with the user and the period of t.
func newDrawing(t Timeline, p policy.Policy) *drawing {
	rate := promise(p)
	t.Policy, t.Densest = p.String(), Densest{Limit: rate.Actions(), Window: rate.Window.Milliseconds()}
	limits := p.Each()
	d := &drawing{
		Timeline: &t, decider: newDecider(p, true), cells: make(map[cell]int),
		queue: slices.IndexFunc(limits, policy.Policy.Queues),
	}
	for i, rate := range p.Rates() {
		empty := limits[i].Read(policy.Latest, 0, nil) // after its first window
		panel := Panel{Name: rate.Name, Limit: empty.Limit}
		windows := ruler{limits[i], rate.Window.Milliseconds()}
		w := windows.at(max(0, t.From-1))
		if windowed := empty.WindowKey != 0; windowed && t.Shown(t.To)/(w.End-w.Start) <= maxBorders {
			for ; w.Start <= t.To; w = windows.at(t.Uncut(w.End)) {
				panel.Windows = append(panel.Windows, w)
			}
		}
		t.Panels = append(t.Panels, panel)
	}
	for i := range int64(columns) {
		d.due = append(d.due, t.at(i*t.Shown(t.To)/columns))
	}
	for _, panel := range t.Panels {
		for _, w := range panel.Windows {
			d.due = append(d.due, w.Start-1, w.Start)
		}
	}
	slices.Sort(d.due)
	d.due = slices.DeleteFunc(slices.Compact(d.due), func(at int64) bool { return at < t.From })
	return d
}

// sample reads the count at each time that is due before until.
func (d *drawing) sample(until int64) {
	for len(d.due) > 0 && d.due[0] < until {
		at := d.due[0]
		d.due = d.due[1:]
		reading := d.decider.request.Policy.Read(at, 0, d.decider.item(d.User, at).state)
		for i := range d.Panels {
			d.step(i, at, used(reading, i))
		}
	}
}

// used returns how many actions count for the limit of a panel.
func used(r policy.Reading, panel int) int64 {
	if len(r.Each) > 0 {
		return r.Each[panel].Used
	}
	return r.Used
}

// step records that used actions count for a panel from the time at on. If the
// clock has stepped back, it records nothing.
func (d *drawing) step(panel int, at, used int64) {
	p := &d.Panels[panel]
	if n := len(p.Steps); n > 0 && (p.Steps[n-1].Used == used || p.Steps[n-1].At > at) {
		return
	}
	p.Steps = append(p.Steps, Step{at, used})
	if first := len(p.Steps) - 1 - stepsOfColumn; first >= 0 && d.column(p.Steps[first].At) == d.column(at) {
		i := first + needless(p.Steps[first:])
		p.Steps = slices.Delete(p.Steps, i, i+1)
	}
}

// stepsOfColumn is how many steps a column of the picture keeps: its first, its
// lowest, its highest and its last one. They look like all of them.
const stepsOfColumn = 4

// needless returns the index of a step that is neither the first, nor the last,
// nor the lowest, nor the highest one. There must be more than stepsOfColumn
// steps.
func needless(steps []Step) int {
	lowest, highest := 0, 0
	for i, s := range steps {
		if s.Used < steps[lowest].Used {
			lowest = i
		}
		if s.Used > steps[highest].Used {
			highest = i
		}
	}
	i := 1
	for i == lowest || i == highest {
		i++
	}
	return i
}

// column returns the column of the picture that shows a time.
func (d *drawing) column(at int64) int64 { return d.Shown(at) * columns / d.Shown(d.To) }

// add puts a decision into the picture. A decision that was made before the
// period is not shown, but the place that it gave may lie in the period.
func (d *drawing) add(line traffic.Line, decision ratelimit.Decision) {
	kind := Refused
	switch {
	case decision.Allowed:
		kind = Allowed
		d.run(line.Time)
	case decision.Reason == ratelimit.Delayed:
		kind = Delayed
		if d.run(decision.ReadyAt) {
			place := (decision.Waiting-1)%d.Panels[d.queue].Limit + 1
			d.mark(d.queue, Mark{At: decision.ReadyAt, Kind: Runs, Used: place})
		}
	}
	if !d.shows(line.Time) {
		return
	}
	d.Requests++
	*[...]*int64{Allowed: &d.Allowed, Refused: &d.Refused, Delayed: &d.Delayed}[kind]++
	for i := range d.Panels {
		d.step(i, line.Time, used(decision.Reading, i))
		if kind != Refused || decision.LimitedBy == d.Panels[i].Name {
			d.mark(i, Mark{At: line.Time, Kind: kind, Used: used(decision.Reading, i)})
		}
	}
}

// shows reports whether a time is in the picture.
func (d *drawing) shows(at int64) bool { return d.From <= at && at < d.To }

// run records an allowed request. It reports whether its time is in the picture.
func (d *drawing) run(at int64) bool {
	if d.shows(at) && len(d.runs) <= maxRuns {
		d.runs = append(d.runs, at)
	}
	return d.shows(at)
}

// mark puts a mark into its cell. If the cell already has a mark, mark adds one
// to the number of requests of that mark.
func (d *drawing) mark(panel int, m Mark) {
	p := &d.Panels[panel]
	c := cell{panel, m.Kind, d.column(m.At), m.Used * levels / p.Limit}
	i, there := d.cells[c]
	if !there {
		i = len(p.Marks)
		d.cells[c] = i
		p.Marks = append(p.Marks, m)
	}
	p.Marks[i].N++
}

// find sets d to the densest stretch of time in runs, the times of allowed
// requests. With more than maxRuns of them it leaves d unchanged.
func (d *Densest) find(runs []int64) {
	if len(runs) > maxRuns {
		return
	}
	slices.Sort(runs)
	first := 0
	for last, at := range runs {
		for runs[first] <= at-d.Window {
			first++
		}
		if n := int64(last - first + 1); n > d.N {
			d.N, d.From, d.To = n, runs[first], at
		}
	}
}
