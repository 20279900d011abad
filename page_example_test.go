package guards_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/limiter"
)

// A hundred writes an hour over two activities. A letter takes 2 of them, and has a limit of its
// own beside it.
func ExampleActivity_group() {
	notes := guards.Guard{Name: "notes-guard", Message: "Please try again later.", Activities: []guards.Activity{
		{Name: "write_note", Limit: "writes: 100/1h", Group: "writing"},
		{Name: "send_letter", Limit: "letters: 10/1h, writes: 100/1h cost 2", Group: "writing"},
	}}
	l, _ := limiter.InMemory([]guards.Guard{notes}, noon)
	_, _ = l.Decide(context.Background(), guards.Request{UserID: "u1", Activity: "write_note", Count: 97})
	for range 2 {
		d, _ := l.Decide(context.Background(), guards.Request{UserID: "u1", Activity: "send_letter"})
		fmt.Printf("%t %q\n", d.Allowed, d.LimitedBy)
	}
	// Output:
	// true ""
	// false "writes"
}

// A plan of a thousand calls from the first of a month to the next, by the clock of a time zone.
func ExampleLimit_calendar() {
	calls := guards.Guard{Name: "api-guard", Message: "Please try again later.", Activities: []guards.Activity{
		{Name: "call_api", Limit: "1000/month in Europe/Berlin"},
	}}
	l, _ := limiter.InMemory([]guards.Guard{calls}, noon)
	d, _ := l.Decide(context.Background(), guards.Request{UserID: "u1", Activity: "call_api", Op: guards.Status})
	fmt.Println(d.Remaining, "until", d.ResetTime().UTC().Format(time.DateTime))
	// Output: 1000 until 2026-11-30 23:00:00
}

// Two limits on one activity: both have to allow it.
func ExampleLimit_several() {
	codes := guards.Guard{Name: "sms-guard", Message: "Please try again later.", Activities: []guards.Activity{
		{Name: "send_code", Limit: "pace: bucket 1/1m, day: 5/1d"},
	}}
	l, _ := limiter.InMemory([]guards.Guard{codes}, noon)
	for range 2 {
		d, _ := l.Decide(context.Background(), guards.Request{UserID: "u1", Activity: "send_code"})
		fmt.Println(d.Allowed, d.LimitedBy, d.RetryAfter())
	}
	// Output:
	// true  0s
	// false pace 1m0s
}

// The JSON of a decision is what a guard's function answers.
func ExampleDecision() {
	var d guards.Decision
	answer := []byte(`{"allowed":false,"reason":"limited","userId":"u1","activity":"create_post","op":"check","limit":10,"activityCount":10,"remaining":0,"waitTime":2000}`)
	if err := json.Unmarshal(answer, &d); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Allowed, d.Reason, d.RetryAfter())
	// Output: false limited 2s
}

// The JSON of a request is the event that a guard's function reads.
func ExampleRequest() {
	event, _ := json.Marshal(guards.Request{UserID: "u1", Activity: "write", Subjects: map[string]string{"room": "r42"}})
	fmt.Println(string(event))
	// Output: {"userId":"u1","activity":"write","subjects":{"room":"r42"}}
}

// The clock of the examples.
func noon() time.Time { return time.Date(2026, 11, 28, 12, 0, 15, 0, time.UTC) }
