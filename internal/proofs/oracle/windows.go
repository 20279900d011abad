package oracle

import (
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// Windows are equally long, or the days, weeks or months of a zone.
type Windows struct {
	length int64 // in milliseconds
	unit   string
	zone   *time.Location
}

// WindowsOf returns the windows of a limit.
func WindowsOf(r policy.Rate) Windows {
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		panic(err)
	}
	return Windows{r.Window.Milliseconds(), r.Unit, zone}
}

// Key returns the number of the window at a time. The zones of the examples change their
// clocks on no first day of a month or a week, and on no day of a run.
func (w Windows) Key(at int64) int64 {
	if w.unit == "" {
		return at / w.length
	}
	local := time.UnixMilli(at).In(w.zone)
	days := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86_400
	switch w.unit {
	case "day":
		return days
	case "week": // the first Monday was 1970-01-05
		return (days-4+7_000)/7 - 999
	default:
		return int64(local.Year()-1970)*12 + int64(local.Month()-1)
	}
}

// Begins returns when the window with this number begins.
func (w Windows) Begins(key int64) int64 {
	date := func(month time.Month, day int) int64 {
		return time.Date(1970, month, day, 0, 0, 0, 0, w.zone).UnixMilli()
	}
	switch w.unit {
	case "day":
		return date(1, 1+int(key))
	case "week":
		return date(1, 5+7*int(key-1))
	case "month":
		return date(1+time.Month(key), 1)
	}
	return key * w.length
}
