// Cleanup is the Lambda function that deletes windows that have passed.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn"
)

func main() { os.Exit(lambdafn.Cleanup()) }
