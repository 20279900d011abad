// Guards asks, tests and operates rate-limit guards from the command line.
package main

import (
	"github.com/cric-talk/guards/command"
	"github.com/cric-talk/guards/limits"
)

func main() { command.Main(limits.All) }
