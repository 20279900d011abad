package client

import "slices"

// suggestion returns a question for the message about an unknown name. It is
// empty if no known name is near.
func suggestion(misspelled string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	best := slices.MinFunc(names, func(a, b string) int { return distance(misspelled, a) - distance(misspelled, b) })
	if distance(misspelled, best) > len(best)/4 {
		return ""
	}
	return "; do you mean " + best + "?"
}

// distance returns how many edits turn a into b. An edit inserts, removes or
// changes one letter.
func distance(a, b string) int {
	d := make([]int, len(b)+1) // d[j] is the distance of a[:i] and b[:j]
	for j := range d {
		d[j] = j
	}
	for i := range len(a) {
		before := d[0] // of a[:i] and b[:j]
		d[0] = i + 1
		for j := range len(b) {
			edits := before
			if a[i] != b[j] {
				edits = 1 + min(before, d[j], d[j+1])
			}
			before, d[j+1] = d[j+1], edits
		}
	}
	return d[len(b)]
}
