package policy

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A calendar divides time into days, weeks or months of a time zone. Weeks begin on
// Monday. Each window begins where the one before it ends. For example, with day in
// Europe/Berlin, the window of 2026-10-25, when clocks go back, lasts from
// 2026-10-24T22:00Z to 2026-10-25T23:00Z, and its key is 20,751.
type calendar struct {
	unit string
	zone *time.Location
	last *atomic.Pointer[Window] // the one that was asked about last, because finding one takes a microsecond
}

// A Window is one of the periods that follow one another from 1970 on: its number, and
// when it begins and ends, in Unix milliseconds.
type Window struct{ Key, Start, End int64 }

// lengths holds the usual length of each unit.
var lengths = map[string]time.Duration{"day": 24 * time.Hour, "week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour}

// newCalendar returns the calendar of a unit and a zone; no zone is UTC.
func newCalendar(unit, zone string) (*calendar, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" { // Local means another zone on each machine
		return nil, &ZoneError{zone}
	}
	return &calendar{unit, location, new(atomic.Pointer[Window])}, nil
}

// A ZoneError reports a time zone that is not in the IANA database.
type ZoneError struct{ Zone string }

// Error implements error.
func (e *ZoneError) Error() string {
	return fmt.Sprintf("time zone is %s, want a name of the IANA database, such as Europe/Berlin", quote(e.Zone))
}

// at returns the day, week or month at now. If clocks go back over midnight, the new
// day stays.
func (c *calendar) at(now int64) Window {
	if w := c.last.Load(); w != nil && w.Start <= now && now < w.End {
		return *w
	}
	key := c.number(now)
	if c.start(key+1) <= now {
		key++
	}
	w := Window{key, c.start(key), c.start(key + 1)}
	c.last.Store(&w)
	return w
}

// number returns the number of the date at now.
func (c *calendar) number(now int64) int64 {
	year, month, day := time.UnixMilli(now).In(c.zone).Date()
	days := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86400
	switch c.unit {
	case "month":
		return int64(year-1970)*12 + int64(month) - 1
	case "week":
		return (days + 3) / 7 // 1970-01-01 was a Thursday
	}
	return days
}

// start returns when the day, week or month with this key begins. If clocks change at
// midnight, midnight is missing or comes twice. Then the window begins at the first
// quarter of an hour that has its date. A date that a zone has skipped has no length.
func (c *calendar) start(key int64) int64 {
	month, day := time.January, int(key)+1
	switch c.unit {
	case "month":
		month, day = time.Month(key)+1, 1
	case "week":
		day = 7*int(key) - 2
	}
	const quarter, longest = 15 * 60_000, 26 * 60 * 60_000
	t := time.Date(1970, month, day, 0, 0, 0, 0, c.zone).UnixMilli()
	_, before := time.UnixMilli(t - longest).In(c.zone).Zone()
	_, after := time.UnixMilli(t + longest).In(c.zone).Zone()
	if before == after { // clocks do not change here
		return t
	}
	for t -= longest; c.number(t) < key; {
		t += quarter
	}
	return t
}
