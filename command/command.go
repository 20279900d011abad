// Package command is the command line of a project: it asks, tests and operates the
// project's guards. The program cmd/guards is one call of Main.
package command

import (
	"os"
	"time"
	_ "time/tzdata" // the zones' rules, for a machine that has none

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/workbench/command"
)

// Main runs the command that the arguments of the process name, and ends the process
// with its exit status. It never returns.
func Main(all []guards.Guard) { os.Exit(command.Main(all, time.Now)) }
