package command

import "slices"

// nearest returns the name that a misspelled one most likely means. It returns
// false if no name is close enough.
func nearest(misspelled string, names []string) (string, bool) {
	best := slices.MinFunc(names, func(a, b string) int { return distance(misspelled, a) - distance(misspelled, b) })
	return best, distance(misspelled, best) <= max(1, len(best)/4)
}

// distance returns how many edits turn a into b. An edit inserts, removes or
// changes one letter, or swaps two neighbours.
func distance(a, b string) int {
	d := make([][]int, len(a)+1) // d[i][j] is the distance of a[:i] and b[:j]
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], 1+d[i-2][j-2])
			}
		}
	}
	return d[len(a)][len(b)]
}
