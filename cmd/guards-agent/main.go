// Guards-agent answers for the guards beside an app, on the same machine.
package main

import (
	"github.com/cric-talk/guards/agent"
	"github.com/cric-talk/guards/limits"
)

func main() { agent.Main(limits.All) }
