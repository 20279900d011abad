// Command forum-guard is the function of forum-guard, a guard of tests.
package main

import (
	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/function"
	"github.com/cric-talk/guards/internal/endtoend/scenarios/testdata/forum"
)

func main() {
	guard := forum.Guard()
	function.Start([]guards.Guard{guard}, guard.Name)
}
