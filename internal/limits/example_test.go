package limits_test

import (
	"fmt"

	"github.com/cric-talk/guards/internal/limits"
)

func ExampleActivity_For() {
	a, _ := limits.Posts.Activity("create_post")
	fmt.Println("ordinary:", a.For(""))
	fmt.Println("premium: ", a.For("premium"))
	fmt.Println("unknown: ", a.For("gold"))

	view, _ := limits.Posts.Activity("view")
	fmt.Println("view is unlimited:", view.For("").IsZero())
	// Output:
	// ordinary: 10/1m
	// premium:  20/1m
	// unknown:  10/1m
	// view is unlimited: true
}
