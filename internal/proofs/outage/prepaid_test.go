package outage_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
)

// In an outage, an instance hands out what it holds of a lease, and then decides alone.
// Both together, and what it admitted before, are at most the limit. What several instances
// admitted by the table and from leases is at most the limit, too.
func TestALeaseInAnOutageIsWithinTheLimit(t *testing.T) {
	prove.Explain(t, "outage")
	for _, f := range failures {
		leased, alone := 0, 0
		for _, text := range []string{
			"240/1m prepaid", "240/day prepaid", "sliding 240/1m prepaid", "bucket 240/1m prepaid", "a: 240/1m prepaid, b: bucket 500/5m prepaid",
		} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, f.name, 2, f.callers, text)
				w.users = w.users[:1]
				for _, in := range w.instances {
					in.Memory.Crowd = 5
				}
				w.run(8*time.Second/time.Duration(f.callers), w.users)
				w.use(f.way)
				before := w.instances[0].leased + w.instances[1].leased
				w.run(prove.Bound(30*time.Second, 20*time.Minute), w.users)
				w.keepInAll()
				leased += w.instances[0].leased + w.instances[1].leased - before
				w.use(healthy)
				w.run(prove.Bound(10*time.Second, 5*time.Minute), w.users)
				time.Sleep(time.Minute) // slow requests arrive
				byTable := account{}
				for i, in := range w.instances {
					w.keep(fmt.Sprintf("what instance %d admitted alone", i), in.alone)
					for user, actions := range in.others {
						byTable[user] = append(byTable[user], actions...)
					}
					alone += len(in.alone)
				}
				w.keep("what the table and leases gave", byTable)
			})
		}
		if leased == 0 || alone == 0 {
			t.Errorf("%s: %d were handed out and %d admitted alone, want some", f.name, leased, alone)
		}
	}
}
