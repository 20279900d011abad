package agent_test

import (
	"github.com/cric-talk/guards/agent"
	"github.com/cric-talk/guards/limits"
)

// This is cmd/guards-agent/main.go of a project.
func ExampleMain() {
	agent.Main(limits.All)
}
