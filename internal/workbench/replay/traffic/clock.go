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
	set   Unit   // the unit of all numbers, if the caller knows it
	found Unit   // the unit of the numbers so far
	place string // of the first number

	zone     *time.Location // of times without a zone; nil: UTC
	zoneless bool           // a time had no zone, and nothing says that it is UTC
	layout   int            // of the last date, which is tried first
	last     int64          // the last time
}

// read returns a time in Unix milliseconds, in the years 1970 to 2261. Place says
// where the time stands. If utc is set, a time without a zone is in UTC by definition.
func (c *clock) read(text []byte, utc bool, place func() string) (ms int64, err error) {
	if ms, err = c.number(text, place); errors.Is(err, errNoNumber) {
		var at time.Time
		var hasZone bool
		if at, hasZone, err = c.date(text); err == nil && !hasZone && !utc {
			at, c.zoneless = c.local(at), true
		}
		if ms = at.UnixMilli(); err == nil && (ms < 0 || ms > policy.Latest) {
			err = errors.New("time is outside of the years 1970 to 2261")
		}
	}
	if err == nil {
		c.last = ms
	}
	return ms, err
}

// local returns the time of a clock on the wall of the zone. In the hour that
// a zone has twice, it returns the second one if the first would be too far
// back.
func (c *clock) local(wall time.Time) time.Time {
	if c.zone == nil {
		return wall
	}
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), c.zone)
	if first := at.Add(-time.Hour); first.Hour() == at.Hour() {
		at = first // Go does not specify which of the two Date returns
	}
	if second := at.Add(time.Hour); second.Hour() == at.Hour() && time.UnixMilli(c.last).Sub(at) > furthestBack {
		return second
	}
	return at
}

var errNoNumber = errors.New("time is no number")

// number reads a time that is a number.
func (c *clock) number(text []byte, place func() string) (int64, error) {
	digits, fraction, isDecimal := bytes.Cut(text, []byte{'.'})
	if !isNumber(digits) || isDecimal && !isNumber(fraction) {
		return 0, errNoNumber
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0, errNoNumber
	}
	unit, err := c.unit(n, isDecimal)
	if err != nil {
		return 0, err
	}
	if c.found == "" {
		c.found, c.place = unit, place()
	}
	if unit != c.found {
		return 0, fmt.Errorf("time is in %s, but that of %s is in %s, want one unit in a file", unitWords[unit], c.place, unitWords[c.found])
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

// layouts are the forms of dates. Fractions of a second can follow the seconds
// of each.
var layouts = []struct {
	layout  string
	hasZone bool
}{
	{time.RFC3339, true},
	{"02/Jan/2006:15:04:05 -0700", true}, // nginx, Apache, S3
	{"2006-01-02 15:04:05", false},       // CloudWatch Insights, W3C
	{"2006-01-02T15:04:05", false},
	{"02/Jan/2006:15:04:05", false}, // HAProxy
	{"2006-01-02 15:04:05Z07:00", true},
	{"2006-01-02 15:04:05Z07", true}, // PostgreSQL
	{"2006-01-02 15:04:05 UTC", true},
	{"2006-01-02 15:04:05 -0700", true},
	{"2006-01-02T15:04:05Z0700", true},
	{"2006/01/02 15:04:05", false}, // Caddy
}

// date reads a time that is not a number. A time without a zone is returned as
// if it were UTC.
func (c *clock) date(text []byte) (at time.Time, hasZone bool, err error) {
	s := string(text)
	if at, err := time.Parse(layouts[c.layout].layout, s); err == nil {
		return at, layouts[c.layout].hasZone, nil
	}
	for i, l := range layouts {
		if at, err := time.Parse(l.layout, s); err == nil {
			c.layout = i
			return at, l.hasZone, nil
		}
	}
	switch {
	case len(text) == 0:
		err = fmt.Errorf("time is empty, want %s", wantTime)
	case bytes.Count(text, []byte("/")) == 2:
		err = errors.New("time is not a time, want one such as 05/Jan/2026:12:00:00 +0000")
	default:
		err = fmt.Errorf("time is not a time, want %s", wantTime)
	}
	return at, false, err
}

// isNumber reports whether text consists of digits.
func isNumber(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}
