// The Lambda function cleanup deletes windows that have expired.
package main

import (
	"github.com/cric-talk/guards/function"
	"github.com/cric-talk/guards/limits"
)

func main() { function.StartCleanup(limits.All) }
