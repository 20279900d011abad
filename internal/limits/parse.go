package limits

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of a rate: more is no limit on a user, and what policies reckon with
// stays far from where an int64 ends.
const (
	mostActions   = 1_000_000
	longestWindow = 366 * 24 * time.Hour
)

// ParseRate reads a limit as people write it: actions, a slash and the time in
// which so many are allowed, such as 20/1m, 100/12h or 1/5s. Both are whole
// numbers of at least 1, in digits; the time's unit is ms, s, m, h or d. There
// are at most 1,000,000 actions, and 366 days.
func ParseRate(text string) (limit int64, window time.Duration, err error) {
	actions, in, _ := strings.Cut(text, "/")
	digits := strings.TrimRight(in, "dhms")
	limit = whole(actions, mostActions)
	unit := unitOf(in[len(digits):])
	if unit > 0 {
		window = time.Duration(whole(digits, int64(longestWindow/unit))) * unit
	}
	if limit == 0 || window == 0 {
		return 0, 0, fmt.Errorf("rate is %+.40q, want actions (1 to %d), a slash and a time (1ms to 366d; ms, s, m, h or d), such as 20/1m or 100/12h", text, mostActions)
	}
	return limit, window, nil
}

// unitOf is a unit of time; 0: there is none of that name.
func unitOf(name string) time.Duration {
	switch name {
	case "ms":
		return time.Millisecond
	case "s":
		return time.Second
	case "m":
		return time.Minute
	case "h":
		return time.Hour
	case "d":
		return 24 * time.Hour
	}
	return 0
}

// whole is a number from 1 to most, written in digits and without a 0 before
// them; 0: it is none.
func whole(digits string, most int64) int64 {
	if strings.Trim(digits, "0123456789") != "" || strings.HasPrefix(digits, "0") {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > most {
		return 0
	}
	return n
}
