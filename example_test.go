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
			{Name: "upload_photo", Limit: "5/1m", Tiers: guards.Tiers{"pro": "30/1m"}},
			{Name: "view_photo", Unlimited: true},
		},
	}
	all := []guards.Guard{photos}
	fmt.Println(guards.Validate(all))
	// Output: <nil>
}

// Validate reports all mistakes at once.
func ExampleValidate() {
	fmt.Println(guards.Validate([]guards.Guard{{
		Name:    "photos-guard",
		Message: "Too many photos. Please try again later.",
		Activities: []guards.Activity{
			{Name: "upload_photo", Limit: "5/1min", Tiers: guards.Tiers{"pro": "30/1m"}},
			{Name: "view_photo"},
		},
	}}))
	// Output:
	// photos-guard, activity "upload_photo": limit is "5/1min": window is "1min", want 1m, as in 5/1m
	// photos-guard, activity "view_photo": it has no limit and is not marked Unlimited
}

func ExampleLimit_String() {
	limit := guards.Limit("minute: 10/60s, day: 200/24h")
	fmt.Println(limit)
	fmt.Println(string(limit))
	// Output:
	// minute: 10/1m, day: 200/1d
	// minute: 10/60s, day: 200/24h
}
