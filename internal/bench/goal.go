//go:build unix

package bench

import "fmt"

// A Goal is a figure and the most that it should be.
type Goal struct {
	What   string
	Spread Spread
	Most   float64
}

// Reached reports whether the figure reaches the goal. It is enough if a quarter of
// the rounds do.
func (g Goal) Reached() bool { return g.Spread.Low <= g.Most }

// String returns the goal in one line.
func (g Goal) String() string {
	return fmt.Sprintf("%-60s %s, goal: at most %v", g.What, g.Spread, g.Most)
}

// String returns the median and, if they differ from it, the quartiles.
func (s Spread) String() string {
	if s.High-s.Low < 0.01*s.Median {
		return fmt.Sprintf("%.3g", s.Median)
	}
	return fmt.Sprintf("%.3g (%.3g to %.3g)", s.Median, s.Low, s.High)
}
