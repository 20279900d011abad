// Guards-agent answers for the guards beside an app, as cmd/guards-agent of a project does. It is the
// same program for every project: it reads a page of limits, which GUARDS_PAGE names. Without it,
// the page is /var/task/limits.json or /opt/guards/limits.json in Lambda, and elsewhere the file
// limits.json beside the program.
package main

import (
	"os"
	_ "time/tzdata" // the zones' rules, because containers and Lambda have none

	"github.com/cric-talk/guards/internal/agentd"
	"github.com/cric-talk/guards/internal/pagefile"
)

func main() { os.Exit(agentd.Run(pagefile.OfProgram, os.Args[1:], os.Stdout, os.Stderr)) }
