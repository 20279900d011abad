// The Lambda function delayed-jobs passes jobs of the delayed queue on at their time.
package main

import (
	"github.com/cric-talk/guards/function/jobs"
	"github.com/cric-talk/guards/limits"
)

func main() { jobs.StartDelayedJobs(limits.All) }
