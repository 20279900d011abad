// Hasty is a guard that gives places in windows of one second, and the function
// that passes on its jobs if there is a ready queue.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn/jobs"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

func main() {
	all := limits.Guards{{Name: "hasty", Message: "Too fast", DelayedQueue: true, Activities: []limits.Activity{
		{Name: "job", Limit: policy.Must("reservoir 10/1s ahead 15m")},
	}}}
	if os.Getenv("READY_QUEUE_URL") != "" {
		jobs.Delayed(all)
	}
	jobs.Guard(all, "hasty")
}
