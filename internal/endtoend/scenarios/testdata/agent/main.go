// Command agent is the agent of this repository's guards and of forum-guard, a guard of tests.
package main

import (
	"slices"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/agent"
	"github.com/cric-talk/guards/internal/endtoend/scenarios/testdata/forum"
	"github.com/cric-talk/guards/limits"
)

func main() {
	agent.Main(slices.Concat(limits.All, []guards.Guard{forum.Guard()}))
}
