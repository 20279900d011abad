// Package words writes numbers for people.
package words

import (
	"fmt"
	"strconv"
)

// Grouped returns n, which must not be negative, with commas between thousands.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Several returns a number with a noun, such as "1 item" or "1,200 items".
func Several(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Grouped(n) + " " + noun
}

// Reached returns what a line about an answer adds: ", locked" if a lockout is, or
// ", crossed 80 %" if its check crossed this share of the limit. It is empty for 0.
func Reached(percent int64, locked bool) string {
	switch {
	case locked:
		return ", locked"
	case percent == 0:
		return ""
	}
	return fmt.Sprintf(", crossed %d %%", percent)
}
