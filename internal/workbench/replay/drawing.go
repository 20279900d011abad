package replay

import (
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A drawing is a timeline that is being made.
type drawing struct {
	*Timeline
	decider *decider
	due     []int64 // times at which to read the count, sorted
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

func newDrawing(activity, user string, p policy.Policy, in period) *drawing {
	t := &Timeline{Activity: activity, Policy: p.String(), User: user, From: in.from, To: in.to, Whole: in.whole}
	rate := promise(p)
	t.Densest.Limit, t.Densest.Window = rate.Limit, rate.Window.Milliseconds()
	limits := p.Each()
	d := &drawing{
		Timeline: t, decider: newDecider(p, true), cells: make(map[cell]int),
		queue: slices.IndexFunc(limits, policy.Policy.Queues),
	}
	for i, rate := range p.Rates() {
		t.Panels = append(t.Panels, newPanel(rate.Name, limits[i].Read(policy.Latest, 0, nil), in))
	}
	for i := range int64(columns) {
		d.due = append(d.due, t.From+i*(t.To-t.From)/columns)
	}
	for _, panel := range t.Panels {
		for _, border := range panel.Borders(t.From, t.To) {
			d.due = append(d.due, border-1, border)
		}
	}
	slices.Sort(d.due)
	d.due = slices.DeleteFunc(slices.Compact(d.due), func(at int64) bool { return at < t.From })
	return d
}

// newPanel returns an empty panel for a limit. Empty holds the limit's figures
// when nothing is counted, at a time after its first window.
func newPanel(name string, empty policy.Reading, in period) Panel {
	panel := Panel{Name: name, Limit: empty.Limit}
	if empty.WindowKey != 0 && (in.to-in.from)/empty.Window.Milliseconds() <= mostBorders {
		panel.Window = empty.Window.Milliseconds()
	}
	return panel
}

// sample reads the count at each time that is due before until.
func (d *drawing) sample(until int64) {
	for len(d.due) > 0 && d.due[0] < until {
		at := d.due[0]
		d.due = d.due[1:]
		reading := d.decider.read(d.User, at)
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
func (d *drawing) column(at int64) int64 { return (at - d.From) * columns / (d.To - d.From) }

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

// run records an allowed request. It reports whether the picture shows its
// time.
func (d *drawing) run(at int64) bool {
	if d.shows(at) && len(d.runs) <= mostRuns {
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
// requests. With more than mostRuns of them it leaves d unchanged.
func (d *Densest) find(runs []int64) {
	if len(runs) > mostRuns {
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
