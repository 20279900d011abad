// The Lambda function jobs-guard decides its activities in limits.go. It puts the
// jobs that have to wait on the delayed queue.
package main

import (
	"github.com/cric-talk/guards/internal/lambdafn/jobs"
	"github.com/cric-talk/guards/limits"
)

func main() { jobs.Guard(limits.All, "jobs-guard") }
