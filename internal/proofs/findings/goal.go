package findings

import "fmt"

// A Goal is a figure and the most that it should be.
type Goal struct {
	What string `json:"what"`
	Spread
	Most float64 `json:"most"`
}

// Reached reports whether the figure reaches the goal. It is enough if a quarter of
// the rounds do.
func (g Goal) Reached() bool { return g.Low <= g.Most }

// Met reports in a word whether the figure reaches the goal. Partly is only some rounds.
func (g Goal) Met() string {
	switch {
	case g.Median <= g.Most:
		return "yes"
	case g.Reached():
		return "partly"
	default:
		return "no"
	}
}

// String returns the goal in one line.
func (g Goal) String() string {
	return fmt.Sprintf("%-60s %s, goal: at most %v", g.What, g.Spread, g.Most)
}

// A Spread is the median of some values, and the middle half of them.
type Spread struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// String returns the median and, if they differ from it, the quartiles.
func (s Spread) String() string {
	if s.High-s.Low < 0.01*s.Median {
		return fmt.Sprintf("%.3g", s.Median)
	}
	return fmt.Sprintf("%.3g (%.3g to %.3g)", s.Median, s.Low, s.High)
}
