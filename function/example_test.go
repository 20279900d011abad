package function_test

import (
	"github.com/cric-talk/guards/function"
	"github.com/cric-talk/guards/limits"
)

// This is the program functions/posts-guard. Lambda starts it.
func ExampleStart() {
	function.Start(limits.All, "posts-guard")
}
