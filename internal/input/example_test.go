package input_test

import (
	"fmt"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/strictjson"
)

func ExampleDecode() {
	type post struct {
		UserID string
		Count  int64
	}
	fields := []input.Field[post]{
		{Name: "userId", Read: func(p *post, f string, v strictjson.Value) error { return input.ID(&p.UserID, f, v) }},
		{Name: "count", Read: func(p *post, f string, v strictjson.Value) error { return input.Whole(&p.Count, f, v) }},
	}
	for _, event := range []string{
		`{"userId": "u1", "count": 3}`,
		`{"userId": "u1", "count": 0}`,
		`{"userId": "u1", "Count": 3}`,
		`{"userId": "u1", "userId": "u2"}`,
	} {
		p, err := input.Decode([]byte(event), fields)
		fmt.Println(p, err)
	}
	// Output:
	// {u1 3} <nil>
	// {u1 0} count is 0, want a whole number of at least 1
	// {u1 0} event has the unknown field "Count", want only userId, count
	// {u1 0} userId is repeated
}
