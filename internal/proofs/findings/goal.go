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

// goals returns a table with each goal beside its figure.
func goals(list []Goal) Table {
	t := Table{Title: "Goals", Head: []string{"figure", "median (middle half of the rounds)", "goal: at most", "met"}}
	for _, g := range list {
		met := "yes"
		if !g.Reached() {
			met = "no"
		}
		t.Rows = append(t.Rows, []string{g.What, g.Spread.String(), fmt.Sprint(g.Most), met})
	}
	return t
}
