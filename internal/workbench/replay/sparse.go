package replay

import (
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// A Cut is time that a picture leaves out, because no request came in it. Its ends are Unix
// milliseconds.
type Cut struct{ From, To int64 }

// Shown returns how many milliseconds of a picture are before at.
func (t *Timeline) Shown(at int64) int64 {
	shown := at - t.From
	for _, c := range t.Cuts {
		if c.From < at {
			shown -= min(at, c.To) - c.From
		}
	}
	return shown
}

// at returns the time that has this many milliseconds of the picture before it.
func (t *Timeline) at(shown int64) int64 {
	at := t.From + shown
	for _, c := range t.Cuts {
		if c.From <= at {
			at += c.To - c.From
		}
	}
	return at
}

// Uncut returns at, or the end of the cut that has it.
func (t *Timeline) Uncut(at int64) int64 {
	for _, c := range t.Cuts {
		if c.From <= at && at < c.To {
			return c.To
		}
	}
	return at
}

// sparse sets the period of t, and cuts the windows without a request of u. It returns false
// if there are none.
func (t *Timeline) sparse(r ruler, times []int64, u *User) bool {
	var windows []policy.Window
	empty := false
	for _, at := range slices.Sorted(slices.Values(times)) {
		w := r.at(at)
		if n := len(windows); n == 0 || w != windows[n-1] {
			empty = empty || n > 0 && windows[n-1].End < w.Start
			windows = append(windows, w)
		}
	}
	if !empty {
		return false
	}
	t.Whole = len(windows) <= maxWindows
	if !t.Whole {
		first := max(0, slices.Index(windows, u.worst.window)-before)
		windows = windows[first:min(first+maxWindows, len(windows))]
	}
	t.From, t.To = windows[0].Start, windows[len(windows)-1].End
	for i, w := range windows[1:] {
		if end := windows[i].End; end < w.Start {
			t.Cuts = append(t.Cuts, Cut{end, w.Start})
		}
	}
	return true
}
