// Hasty is a guard that gives places in windows of one second, and the function
// that passes on its jobs if there is a ready queue.
package main

import (
	"os"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/lambdafn/jobs"
)

func main() {
	all := []guards.Guard{{Name: "hasty", Message: "Too fast", DelayedQueue: true, Activities: []guards.Activity{
		{Name: "job", Limit: "reservoir 10/1s ahead 15m"},
	}}}
	if os.Getenv("READY_QUEUE_URL") != "" {
		jobs.Delayed(all, nil)
	}
	jobs.Guard(all, "hasty", nil)
}
