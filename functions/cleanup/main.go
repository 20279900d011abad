// The Lambda function cleanup deletes windows that have expired.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn"
)

func main() { os.Exit(lambdafn.Cleanup()) }
