package replay

import (
	"context"
	"fmt"
)

// A Timeline is what a limit would have done to one user in a while: material
// for a picture, of bounded size. Times are Unix milliseconds.
type Timeline struct {
	Activity string
	Policy   string // in words
	User     string
	From, To int64
	Whole    bool // there is no more of this user

	Requests, Allowed, Refused, Delayed int64 // in this while

	Panels  []Panel // one for each limit
	Densest Densest
}

// A Panel is one limit.
type Panel struct {
	Name   string // of several limits; else empty
	Limit  int64
	Window int64 // milliseconds from one border to the next; 0: the policy has none
	Steps  []Step
	Marks  []Mark
}

// A Step is a moment from which on so many actions count.
type Step struct{ At, Used int64 }

// A Mark is a request, or several that no picture could tell apart.
type Mark struct {
	At   int64
	Kind Kind
	Used int64 // what counts after it; of Runs, its place in its window
	N    int64 // how many
}

// Kind is what became of a request.
type Kind uint8

// The kinds. What was delayed has a second mark at the time that it was given.
const (
	Allowed Kind = iota
	Refused
	Delayed
	Runs
)

// Densest is the time with the most requests let through: by the promise that
// people see in the limit, but for delayed ones when they would have run.
type Densest struct {
	Window   int64 // milliseconds in which the promise is
	Limit    int64 // and how many it is
	N        int64 // the most in any such time; 0: nobody knows
	From, To int64 // the first and the last of them
}

const (
	mostWindows = 12 // in a picture: more are too narrow to read
	before      = 4  // of them so many before the worst

	// columns and levels are how finely a picture tells marks apart.
	columns, levels = 480, 70

	mostRuns = 1 << 20 // requests let through, of which the densest time is found
)

// Timeline decides the user's requests once more; empty: those of the one who
// was held up most. The traffic is read from its start again, and the report is
// what Run made of it.
func (r *Replay) Timeline(ctx context.Context, t *Traffic, report *Report, user string) (*Timeline, error) {
	u, ok := report.user(user)
	if !ok {
		return nil, fmt.Errorf("%s has no request of the user %+.40q", t.name, user)
	}
	d := r.newDrawing(u, report.window)
	err := r.each(ctx, t, func(line Line) error {
		if line.Activity != r.Activity || line.User != u.ID || line.Time >= d.To {
			return nil
		}
		if err := d.sample(ctx, line.Time); err != nil {
			return err
		}
		decision, err := d.bench.check(ctx, line)
		if err == nil {
			d.add(line, decision)
		}
		return err
	})
	if err == nil {
		err = d.sample(ctx, d.To)
	}
	d.Densest.find(d.runs)
	return d.Timeline, err
}

// period is the while that a picture shows: all of the user's requests or, where
// these take too long, the windows around the worst.
func (u *User) period(window int64) (from, to int64, whole bool) {
	last := max(u.last, u.lastRun)
	from, to = u.first/window*window, (last/window+1)*window
	if took := last - u.first; took > 0 && to-from > 4*took { // much of a window would be empty
		return max(0, u.first-took/10-1), last + took/10 + 1, true
	}
	if to-from <= mostWindows*window {
		return from, to, true
	}
	from = max(from, (u.worst.window-before)*window)
	return from, from + mostWindows*window, u.first >= from && u.last < from+mostWindows*window
}

// Borders are the borders of the limit's windows in a while, both ends included.
func (p *Panel) Borders(from, to int64) (all []int64) {
	if p.Window == 0 {
		return nil
	}
	for at := (from + p.Window - 1) / p.Window * p.Window; at <= to; at += p.Window {
		all = append(all, at)
	}
	return all
}
