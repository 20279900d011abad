package live_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An instance does not wait until its clock shows its old time again: after a
// step back the next decision looks.
//
//	12:00  a look finds 20/1m
//	11:00  the clock has stepped back, and the limit is now 5/1m
//	11:00  the next look finds it
//
// The same holds if the look before failed, so that the next one is due 5 s later.
func TestLimitsAreReadAfterTheClockSteppedBack(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error // of the look before
		limit int64 // after it
	}{
		"from a look that found limits": {nil, 20},
		"from a look that failed":       {errors.New("away"), 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				back := time.Duration(0)
				b.Now = func() time.Time { return time.Now().Add(-back) }
				b.set("20/1m")
				b.err = tt.err
				b.look(tt.limit, 1)
				b.err = nil
				b.set("5/1m")
				for _, back = range []time.Duration{time.Second, time.Hour} {
					b.reads = 0
					b.Refresh(t.Context(), 0)()
					b.check(5, 1)
				}
			})
		})
	}
}
