// The Lambda function jobs-guard decides its activities in limits.go. It puts the
// jobs that have to wait on the delayed queue.
package main

import (
	"github.com/cric-talk/guards/function/jobs"
	"github.com/cric-talk/guards/limits"
)

func main() { jobs.Start(limits.All, "jobs-guard") }
