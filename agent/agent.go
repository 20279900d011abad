// Package agent is the program that answers for a project's guards beside an app, on the same
// machine: a Lambda extension, a sidecar, or a service. The app needs no AWS SDK, no credentials
// and no list of activities. It sends an event over HTTP, and the agent asks the table itself:
//
//	GUARDS_AGENT=http://127.0.0.1:2774
//
// A project's cmd/guards-agent/main.go is one call of [Main]. An app in Go can do without the
// agent: see package limiter.
package agent

import (
	"os"
	_ "time/tzdata" // the zones' rules, because containers and Lambda have none

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/agentd"
)

// Main runs the agent of these guards, as the variables GUARDS_* configure it, and ends the
// process. With the argument health, it asks the agent that runs already whether it can decide.
//
// In Lambda it ends only with the environment, because an extension that ends takes the app's
// function with it. If a setting or a limit is wrong, each request is answered with the mistake.
// Elsewhere a mistake ends the process with status 1.
func Main(all []guards.Guard) {
	os.Exit(agentd.Run(func() ([]guards.Guard, error) { return all, nil }, os.Args[1:], os.Stdout, os.Stderr))
}
