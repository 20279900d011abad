// The Lambda function jobs-guard decides the activities that limits.Jobs lists.
// It puts the jobs that have to wait on the delayed queue.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn/jobs"
	"github.com/cric-talk/guards/internal/limits"
)

func main() { os.Exit(jobs.Guard(limits.Jobs)) }
