// The Lambda function posts-guard decides the activities that limits.Posts
// lists.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
)

func main() { os.Exit(lambdafn.Guard(limits.Posts)) }
