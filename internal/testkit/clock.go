package testkit

import (
	"fmt"
	"time"
	"unsafe"
)

// Later returns a time from time.Now after the clock on the wall has gone on by some seconds, and
// the monotonic clock by ran. In a freeze, the monotonic clock can stand still.
func Later(t time.Time, wall, ran time.Duration) time.Time {
	later := t
	p := (*struct { // as in package time, which has no function for this
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&later))
	p.wall += uint64(wall/time.Second) << 30
	p.ext += int64(ran)
	if later.Sub(t) != ran || later.Round(0).Sub(t.Round(0)) != wall {
		panic(fmt.Sprintf("%v is not %v and %v later than %v", later, wall, ran, t))
	}
	return later
}
