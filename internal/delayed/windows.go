package delayed

import (
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/limits"
)

// leastWindow is the shortest window in which a job from a queue is on time. SQS
// delays a message by whole seconds, so a job comes up to a second after its place
// begins. In a window of a second, most jobs would come late and take a new place,
// again and again.
const leastWindow = 2 * time.Second

// CheckWindows returns an error if the guard gives places in windows that are too
// short for a queue. Tiers and live limits have the same windows.
func CheckWindows(g limits.Guard) error {
	for _, a := range g.Activities {
		for _, p := range a.Limit.Each() {
			if p.Queues() && p.Rates()[0].Window < leastWindow {
				return fmt.Errorf("the limit of %s is %q, want a window of at least %v, because SQS delivers a job up to a second late", a.Name, p, leastWindow)
			}
		}
	}
	return nil
}
