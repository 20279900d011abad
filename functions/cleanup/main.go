// The Lambda function cleanup deletes windows that have expired.
package main

import (
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/limits"
)

func main() { lambdafn.Cleanup(limits.All) }
