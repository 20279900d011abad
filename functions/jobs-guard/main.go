// Jobs-guard is the Lambda function that limits what its activities in
// internal/limits say, and puts on the delayed queue what has to wait.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn/jobs"
	"github.com/cric-talk/guards/internal/limits"
)

func main() { os.Exit(jobs.Guard(limits.Jobs)) }
