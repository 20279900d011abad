package simulate_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit"
)

// memory is how many bytes the memory of an instance takes at most.
const memory = 1 << 20

// The memory of an instance stays within its bound, whatever a crowd takes.
func TestTheMemoryOfACrowdIsBounded(t *testing.T) {
	prove.Explain(t, "simulate")
	for i, subject := range subjects() {
		if prove.Quick() && i%16 != 0 {
			continue
		}
		t.Run(subject.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(subject, 1, false)
				a := s.activities[0]
				for i := range 4000 { // users come within a second, and ask for as much as the limit gives at once
					r := call{Request: ratelimit.Request{UserID: fmt.Sprint("one of many ", i), Activity: a.Name, Group: a.Group, Count: s.of(a.Limit).numbers.Most, ID: fmt.Sprint("r", i), Fallback: true}}
					s.at(s.now+s.upTo(1000), func() { s.instances[0].send(ratelimit.Check, r, math.MaxInt64, nil) })
				}
				s.loop()
				if s.violation != "" {
					t.Error(s.violation)
				}
				with := testkit.HeapInUse()
				s.instances[0].limiter.Memory = nil
				if got := with - testkit.HeapInUse(); got > memory*5/4 { // the runtime adds a part
					t.Errorf("the memory takes %d bytes, want at most %d", got, memory)
				}
				runtime.KeepAlive(s)
			})
		})
	}
}
