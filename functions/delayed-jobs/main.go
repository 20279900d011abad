// The Lambda function delayed-jobs takes jobs from the delayed queue and passes
// each one on when its time has come.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn/jobs"
	"github.com/cric-talk/guards/limits"
)

func main() { os.Exit(jobs.Delayed(limits.All, "jobs-guard")) }
