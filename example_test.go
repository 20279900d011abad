package guards_test

import (
	"fmt"

	"github.com/cric-talk/guards"
)

// A page of limits lists all guards. Each is one Lambda function.
func Example() {
	photos := guards.Guard{
		Name:    "photos-guard",
		Message: "Too many photos. Please try again later.",
		Activities: []guards.Activity{
			{Name: "upload_photo", Limit: guards.Limit("5/1m"), Tiers: guards.Tiers{"pro": guards.Limit("30/1m")}},
			{Name: "view_photo", Unlimited: true},
		},
	}
	all := []guards.Guard{photos}
	for _, g := range all {
		for _, a := range g.Activities {
			fmt.Printf("%s, %s: %q, pro %q\n", g.Name, a.Name, a.For(""), a.For("pro"))
		}
	}
	// Output:
	// photos-guard, upload_photo: "5/1m", pro "30/1m"
	// photos-guard, view_photo: "", pro ""
}

func ExampleLimit() {
	limit := guards.Limit("minute: 10/60s, day: 200/24h")
	fmt.Println(limit)
	// Output: minute: 10/1m, day: 200/1d
}
