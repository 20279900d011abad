package command_test

import (
	"github.com/cric-talk/guards/command"
	"github.com/cric-talk/guards/limits"
)

// This is the program cmd/guards.
func ExampleMain() {
	command.Main(limits.All)
}
