// The Lambda function delayed-jobs takes jobs from the delayed queue and passes
// each one on when its time has come.
package main

import (
	"github.com/cric-talk/guards/internal/lambdafn/jobs"
	"github.com/cric-talk/guards/limits"
)

func main() { jobs.Delayed(limits.All, "jobs-guard") }
