// The Lambda function cleanup deletes windows that have expired.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/limits"
)

func main() { os.Exit(lambdafn.Cleanup(limits.All)) }
