package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A Unit is what a number of a time counts.
type Unit string

// The units. AnyUnit is Seconds or Millis, depending on the size of the numbers.
const (
	AnyUnit Unit = ""
	Seconds Unit = "s"
	Millis  Unit = "ms"
)

// unitWords holds the units in words.
var unitWords = map[Unit]string{Seconds: "Unix seconds", Millis: "Unix milliseconds"}

// Numbers of seconds from firstSecond to before lastSecond are the years 2000
// to 2099. A number in this range can't be milliseconds of these years, and the
// other way round.
const (
	firstSecond = 946_684_800
	lastSecond  = 4_102_444_800
)

const wantTime = "Unix seconds, Unix milliseconds, or RFC 3339 such as 2026-01-05T12:00:00.250Z"

// A clock reads the times of one file. Its errors never repeat a time, because
// a column that was named wrongly can hold the ids of users.
type clock struct {
	set   Unit  // the unit of all numbers, if the caller knows it
	found Unit  // the unit of the numbers so far
	line  int64 // of the first number
}

// read returns a time in Unix milliseconds, in the years 1970 to 2261. Line is
// where the time stands.
func (c *clock) read(text []byte, line int64) (int64, error) {
	digits, fraction, isDecimal := bytes.Cut(text, []byte{'.'})
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || !isNumber(digits) || isDecimal && !isNumber(fraction) {
		return readDate(text)
	}
	unit, err := c.unit(n, isDecimal)
	if err != nil {
		return 0, err
	}
	if c.found == "" {
		c.found, c.line = unit, line
	}
	if unit != c.found {
		return 0, fmt.Errorf("time is in %s, but that of line %d is in %s, want one unit in a file", unitWords[unit], c.line, unitWords[c.found])
	}
	ms := n
	if unit == Seconds {
		thousandths, _ := strconv.ParseInt((string(fraction) + "000")[:3], 10, 64)
		ms = n*1000 + thousandths
	}
	if n > policy.Latest || ms > policy.Latest {
		return 0, fmt.Errorf("time is after the year 2261, want %s", wantTime)
	}
	return ms, nil
}

// unit returns the unit of n. A decimal has a point, as in 1767571200.250.
func (c *clock) unit(n int64, isDecimal bool) (Unit, error) {
	within := func(scale int64) bool { return n >= firstSecond*scale && n/scale < lastSecond }
	switch {
	case isDecimal && c.set == Millis:
		return "", fmt.Errorf("time has a decimal point, want Unix milliseconds")
	case c.set != AnyUnit:
		return c.set, nil
	case within(1):
		return Seconds, nil
	case within(1000) && !isDecimal:
		return Millis, nil
	case within(1_000_000):
		return "", fmt.Errorf("time looks like Unix microseconds, want %s", wantTime)
	case within(1_000_000_000):
		return "", fmt.Errorf("time looks like Unix nanoseconds, want %s", wantTime)
	}
	return "", fmt.Errorf("time has %s, and its unit is unclear: as seconds and as milliseconds, it is outside of the years 2000 to 2099; "+
		"give the unit with --unit s or --unit ms", counted(len(strconv.FormatInt(n, 10)), "digit"))
}

// layouts are the forms of dates, and what is wrong with them if anything is.
var layouts = []struct{ layout, problem string }{
	{time.RFC3339, ""},
	{"02/Jan/2006:15:04:05 -0700", ""}, // nginx
	{"2006-01-02T15:04:05", "time has no time zone"},
	{"2006-01-02 15:04:05", "time has no T and no time zone"},
	{"2006-01-02 15:04:05Z07:00", "time has a blank in place of T"},
	{"2006-01-02 15:04:05Z07", "time has a blank in place of T, and its zone has no minutes"},
	{"2006-01-02 15:04:05 MST", "time has blanks"},
}

// readDate reads a time that is not a number.
func readDate(text []byte) (int64, error) {
	for _, l := range layouts {
		at, err := time.Parse(l.layout, string(text))
		switch ms := at.UnixMilli(); {
		case err != nil:
		case l.problem != "":
			return 0, fmt.Errorf("%s, want %s", l.problem, wantTime)
		case ms < 0 || ms > policy.Latest:
			return 0, fmt.Errorf("time is outside of the years 1970 to 2261")
		default:
			return ms, nil
		}
	}
	if len(text) == 0 {
		return 0, fmt.Errorf("time is empty, want %s", wantTime)
	}
	if bytes.Count(text, []byte("/")) == 2 {
		return 0, errors.New("time is not a time, want one of nginx such as 05/Jan/2026:12:00:00 +0000")
	}
	return 0, fmt.Errorf("time is not a time, want %s", wantTime)
}

// isNumber reports whether text consists of digits.
func isNumber(text []byte) bool { return len(text) > 0 && len(bytes.Trim(text, "0123456789")) == 0 }
