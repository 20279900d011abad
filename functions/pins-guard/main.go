// Pins-guard is the Lambda function that limits what its activities in
// internal/limits say.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
)

func main() { os.Exit(lambdafn.Guard(limits.Pins)) }
