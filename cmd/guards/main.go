// Guards asks, tests and operates rate-limit guards from the command line.
package main

import (
	"os"

	"github.com/cric-talk/guards/internal/workbench/command"
	"github.com/cric-talk/guards/limits"
)

func main() { os.Exit(command.Main(limits.All)) }
