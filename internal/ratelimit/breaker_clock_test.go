package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

// After the clock has stepped back, an open circuit does not wait until the
// clock shows its old time again: the next decision is the probe.
//
//	12:00:00  a check ends as an outage and opens the circuit
//	11:00:00  the clock has stepped back, and the table answers again
//	11:00:00  the next check asks the table
func TestAnOpenCircuitIsProbedAfterTheClockSteppedBack(t *testing.T) {
	for name, f := range map[string]fault{"an outage": hang, "a throttled key": throttle} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(f)
			var r ids
			back := time.Duration(0)
			l.Now = func() time.Time { return time.Now().Add(-back) }
			if d := mustCheck(t, l, r.next(1)); d.Reason != Unavailable {
				t.Fatalf("%s: %+v, want it from memory", name, d)
			}
			store.set(pass)
			back = time.Hour
			if d := mustCheck(t, l, r.next(1)); d.Reason != OK || d.Requests == 0 {
				t.Errorf("%s: after the clock stepped back %+v, want the table's decision", name, d)
			}
		})
	}
}
