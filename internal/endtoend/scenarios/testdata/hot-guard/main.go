// Command hot-guard is a guard of tests, with prepaid limits.
package main

import (
	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/function"
)

func main() {
	hot := guards.Guard{
		Name:    "hot-guard",
		Message: "Too many requests. Please try again later.",
		Activities: []guards.Activity{
			{Name: "call", Limit: "60000/1m prepaid"},
			{Name: "write", Limit: "60/1m", Subjects: []guards.Subject{{Name: "room", Limit: "20000/1m prepaid"}}},
		},
	}
	function.Start([]guards.Guard{hot}, hot.Name)
}
