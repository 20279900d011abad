package policy_test

import (
	"fmt"

	"github.com/cric-talk/guards/internal/policy"
)

// A caller keeps the state and applies the updates. Here the state is a map; in
// production it is an item of a database.
func Example() {
	p := policy.Must("2/1m")
	var item policy.State
	for range 3 {
		const now = 1_700_000_040_000 // a full minute, in Unix milliseconds
		update, ok := p.Take(now, 1, 0, item)
		if ok && update.Holds(item) {
			item = update.Apply(item)
		}
		r := p.Read(now, 1, item)
		fmt.Printf("allowed: %v, %d of %d used, wait %v\n", ok, r.Used, r.Limit, r.Wait)
	}
	// Output:
	// allowed: true, 1 of 2 used, wait 0s
	// allowed: true, 2 of 2 used, wait 1m0s
	// allowed: false, 2 of 2 used, wait 1m0s
}

func ExampleParse() {
	p, err := policy.Parse("minute: 10/60s, day: log 100/24h")
	fmt.Println(p, err)
	_, err = policy.Parse("log 200/1d")
	fmt.Println(err)
	// Output:
	// minute: 10/1m, day: log 100/1d <nil>
	// limit is "log 200/1d": limit is 200, want at most 100, because each action takes a slot of the item; did you mean "sliding 200/1d"?
}

// Two callers plan an update from the same state. The database applies the first
// one. The guard of the second one then fails, so its caller plans again.
func ExamplePolicy_Take() {
	p := policy.Must("10/1m")
	const now = 1_700_000_040_000
	item := policy.State{{Name: "activityCount", Value: 9}}

	first, _ := p.Take(now, 1, 0, item)
	second, _ := p.Take(now, 1, 0, item)
	fmt.Printf("the guard is %s <= %d\n", first.If[0][0].Attr, first.If[0][0].To)

	item = first.Apply(item)
	fmt.Println("after the first update:", item)
	fmt.Println("the second one still holds:", second.Holds(item))
	_, ok := p.Take(now, 1, 0, item)
	fmt.Println("there is room for one more:", ok)
	// Output:
	// the guard is activityCount <= 9
	// after the first update: [{activityCount 10}]
	// the second one still holds: false
	// there is room for one more: false
}

func ExamplePolicy_Read() {
	p := policy.Must("minute: 10/1m, day: 200/1d")
	const now = 1_700_000_040_000
	update, _ := p.Take(now, 10, 0, nil)
	r := p.Read(now, 1, update.Apply(nil))
	fmt.Println(r.Name, "restricts most:", r.Used, "of", r.Limit, "used, wait", r.Wait)
	for _, each := range r.Each {
		fmt.Println(each.Name, "has", each.Remaining, "left")
	}
	// Output:
	// minute restricts most: 10 of 10 used, wait 1m0s
	// minute has 0 left
	// day has 190 left
}

func ExamplePolicy_Undo() {
	p := policy.Must("log 3/1h")
	const now = 1_700_000_040_000
	taken, _ := p.Take(now, 2, 0, nil)
	item := taken.Apply(nil)

	back, ok := p.Undo(now+60_000, now, now, 2, item)
	fmt.Println("a minute later:", ok, p.Read(now+60_000, 0, back.Apply(item)).Used, "used")
	_, ok = p.Undo(now+3_600_000, now, now, 2, item)
	fmt.Println("an hour later:", ok)
	// Output:
	// a minute later: true 0 used
	// an hour later: false
}
