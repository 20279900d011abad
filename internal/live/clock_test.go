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
func TestLimitsAreReadAfterTheClockSteppedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		back := time.Duration(0)
		b.Now = func() time.Time { return time.Now().Add(-back) }
		b.set("20/1m")
		b.look(20, 1)
		b.set("5/1m")
		back = time.Hour
		b.Look(t.Context())()
		b.check(5, 1)
	})
}

// The same holds if the last look failed, so that the next one is due 5 s later.
func TestLimitsAreReadAfterTheClockSteppedBackFromAFailedLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		back := time.Duration(0)
		b.Now = func() time.Time { return time.Now().Add(-back) }
		b.set("5/1m")
		b.err = errors.New("away")
		b.look(10, 1)
		b.err = nil
		b.reads, back = 0, time.Second
		b.Look(t.Context())()
		b.check(5, 1)
	})
}
