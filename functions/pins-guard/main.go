// The Lambda function pins-guard decides the activities that limits.Pins lists.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
)

func main() { os.Exit(lambdafn.Guard(limits.Pins)) }
