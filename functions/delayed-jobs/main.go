// Delayed-jobs is the Lambda function that takes jobs off the delayed queue and
// passes them on at their time.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn/jobs"
	"github.com/cric-talk/guards/internal/limits"
)

func main() { os.Exit(jobs.Delayed(limits.Jobs)) }
