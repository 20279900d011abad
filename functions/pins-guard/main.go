// The Lambda function pins-guard decides its activities in limits.go.
package main

import (
	"github.com/cric-talk/guards/function"
	"github.com/cric-talk/guards/limits"
)

func main() { function.Start(limits.All, "pins-guard") }
