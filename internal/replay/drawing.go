package replay

import (
	"context"
	"slices"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A drawing is a timeline in the making.
type drawing struct {
	*Timeline
	bench *bench
	due   []int64 // times to look at the count, in order
	cells map[cell]int
	runs  []int64 // times at which requests were let through
}

// A cell is a place of a picture that holds one mark.
type cell struct {
	panel         int
	kind          Kind
	column, level int64
}

func (r *Replay) newDrawing(u *User, window int64) *drawing {
	t := &Timeline{Activity: r.Activity, Policy: r.Policy.String(), User: u.ID}
	t.From, t.To, t.Whole = u.period(window)
	t.Densest.Limit, _ = promise(r.Policy)
	t.Densest.Window = window
	if several, ok := r.Policy.(ratelimit.Several); ok {
		for _, m := range several {
			t.Panels = append(t.Panels, newPanel(m.Name, m.Policy))
		}
	} else {
		t.Panels = []Panel{newPanel("", r.Policy)}
	}
	d := &drawing{Timeline: t, bench: newBench(r.Policy), cells: make(map[cell]int)}
	for i := range int64(columns) {
		d.due = append(d.due, t.From+i*(t.To-t.From)/columns)
	}
	for _, p := range t.Panels {
		for _, border := range p.Borders(t.From, t.To) {
			d.due = append(d.due, border-1, border)
		}
	}
	slices.Sort(d.due)
	d.due = slices.DeleteFunc(slices.Compact(d.due), func(at int64) bool { return at < t.From })
	return d
}

func newPanel(name string, p ratelimit.Policy) Panel {
	panel := Panel{Name: name}
	limit, window := p.Quota()
	panel.Limit = limit
	switch p.(type) {
	case ratelimit.FixedWindow, ratelimit.SlidingWindow, ratelimit.Reservoir:
		panel.Window = window.Milliseconds()
	}
	return panel
}

// sample looks at the count at each time that is due before until.
func (d *drawing) sample(ctx context.Context, until int64) error {
	for len(d.due) > 0 && d.due[0] < until {
		at := d.due[0]
		d.due = d.due[1:]
		decision, err := d.bench.status(ctx, d.User, at)
		if err != nil {
			return err
		}
		for i := range d.Panels {
			d.Panels[i].step(at, used(decision, i))
		}
	}
	return nil
}

// used is what counts for one of the limits.
func used(d ratelimit.Decision, panel int) int64 {
	if len(d.Each) > 0 {
		return d.Each[panel].Used
	}
	return d.Used
}

// step has used count from at on. A clock that stepped back changes nothing.
func (p *Panel) step(at, used int64) {
	if n := len(p.Steps); n > 0 && (p.Steps[n-1].Used == used || p.Steps[n-1].At > at) {
		return
	}
	p.Steps = append(p.Steps, Step{at, used})
}

// add has a decision in the picture. One before it may have given a place in it.
func (d *drawing) add(line Line, decision ratelimit.Decision) {
	kind := Refused
	switch {
	case decision.Allowed:
		kind = Allowed
		d.run(line.Time)
	case decision.Reason == ratelimit.Delayed:
		kind = Delayed
		if d.run(decision.ReadyAt) {
			d.mark(0, Mark{At: decision.ReadyAt, Kind: Runs, Used: (decision.Enqueued-1)%decision.Limit + 1})
		}
	}
	if !d.shows(line.Time) {
		return
	}
	d.Requests++
	switch kind {
	case Allowed:
		d.Allowed++
	case Refused:
		d.Refused++
	case Delayed:
		d.Delayed++
	}
	for i := range d.Panels {
		p := &d.Panels[i]
		p.step(line.Time, used(decision, i))
		if kind != Refused || decision.LimitedBy == p.Name {
			d.mark(i, Mark{At: line.Time, Kind: kind, Used: used(decision, i)})
		}
	}
}

// shows says whether a time is in the picture.
func (d *drawing) shows(at int64) bool { return d.From <= at && at < d.To }

// run has a request let through at a time, if the picture shows that.
func (d *drawing) run(at int64) bool {
	if d.shows(at) && len(d.runs) <= mostRuns {
		d.runs = append(d.runs, at)
	}
	return d.shows(at)
}

// mark puts a mark into its cell, or counts it with the one that is there.
func (d *drawing) mark(panel int, m Mark) {
	p := &d.Panels[panel]
	c := cell{panel, m.Kind, (m.At - d.From) * columns / (d.To - d.From), m.Used * levels / p.Limit}
	i, there := d.cells[c]
	if !there {
		i = len(p.Marks)
		d.cells[c] = i
		p.Marks = append(p.Marks, m)
	}
	p.Marks[i].N++
}

// find finds the densest time of those at which requests were let through.
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
