package limits_test

import (
	"fmt"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

func ExampleActivity_For() {
	a := limits.Activity{Name: "create_post", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"premium": policy.Must("20/1m")}}
	fmt.Println("ordinary:", a.For(""))
	fmt.Println("premium: ", a.For("premium"))
	fmt.Println("unknown: ", a.For("gold"))

	view := limits.Activity{Name: "view", Unlimited: true}
	fmt.Println("view is unlimited:", view.For("").IsZero())
	// Output:
	// ordinary: 10/1m
	// premium:  20/1m
	// unknown:  10/1m
	// view is unlimited: true
}
