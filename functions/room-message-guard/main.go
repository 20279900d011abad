// The Lambda function room-message-guard decides the activities that
// limits.RoomMessages lists.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
)

func main() { os.Exit(lambdafn.Guard(limits.RoomMessages)) }
