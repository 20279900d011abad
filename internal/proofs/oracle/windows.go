package oracle

import (
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// Windows are equally long, or the days, weeks or months of a zone.
type Windows struct {
	length   int64 // in milliseconds
	calendar *calendar
}

// A calendar has the days, weeks or months of a zone.
type calendar struct {
	unit   string
	zone   *time.Location
	begins sync.Map // when each window begins that was asked about, by its number
}

// calendars are those that were asked about, by unit and zone.
var calendars sync.Map

// WindowsOf returns the windows of a limit.
func WindowsOf(r policy.Rate) Windows {
	if r.Unit == "" {
		return Windows{length: r.Window.Milliseconds()}
	}
	c, ok := calendars.Load(r.Unit + " in " + r.Zone)
	if !ok {
		zone, err := time.LoadLocation(r.Zone)
		if err != nil {
			panic(err)
		}
		c, _ = calendars.LoadOrStore(r.Unit+" in "+r.Zone, &calendar{unit: r.Unit, zone: zone})
	}
	return Windows{r.Window.Milliseconds(), c.(*calendar)}
}

// Key returns the number of the window at a time. If clocks go back over midnight, the
// new window stays.
func (w Windows) Key(at int64) int64 {
	if w.calendar == nil {
		return at / w.length
	}
	key := w.calendar.number(at)
	if w.Begins(key+1) <= at {
		key++
	}
	return key
}

// number returns the number of the window that has the date at a time.
func (c *calendar) number(at int64) int64 {
	local := time.UnixMilli(at).In(c.zone)
	days := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86_400
	switch c.unit {
	case "day":
		return days
	case "week": // the first Monday was 1970-01-05
		return (days-4+7_000)/7 - 999
	default:
		return int64(local.Year()-1970)*12 + int64(local.Month()-1)
	}
}

// Begins returns when the window with this number begins: at the first quarter of an hour
// that has its date.
func (w Windows) Begins(key int64) int64 {
	c := w.calendar
	if c == nil {
		return key * w.length
	}
	if at, ok := c.begins.Load(key); ok {
		return at.(int64)
	}
	month, day := time.January, 1+int(key)
	switch c.unit {
	case "week":
		day = 5 + 7*int(key-1)
	case "month":
		month, day = time.January+time.Month(key), 1
	}
	const quarter, ahead = 900_000, 15 * 3_600_000 // no zone is further ahead of UTC
	at := time.Date(1970, month, day, 0, 0, 0, 0, time.UTC).UnixMilli() - ahead
	for c.number(at) < key {
		at += quarter
	}
	c.begins.Store(key, at)
	return at
}
