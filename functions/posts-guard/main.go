// The Lambda function posts-guard decides its activities in limits.go.
package main

import (
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/limits"
)

func main() { lambdafn.Guard(limits.All, "posts-guard") }
