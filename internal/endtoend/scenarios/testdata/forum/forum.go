// Package forum has forum-guard, a guard of tests. Its activities count for a user, and for
// a room if the variable ROOM is optional or required.
package forum

import (
	"os"

	"github.com/cric-talk/guards"
)

// Guard returns forum-guard.
func Guard() guards.Guard {
	return guards.Guard{
		Name:    "forum-guard",
		Message: "Too many requests. Please try again later.",
		Activities: []guards.Activity{
			{Name: "write", Limit: "5/1m", Subjects: room("3/1m")},
			{Name: "record", Limit: "1000/1d", Subjects: room("log 1/1m")},
			{Name: "note", Limit: "100000/1d", Subjects: room("100000/1d")},
			{Name: "call", Limit: "log 100/10m", Subjects: room("log 100/10m")},
		},
	}
}

// room returns the subjects of an activity: a room with this limit, as ROOM says, and a
// tenant that an event may leave out.
func room(limit string) []guards.Subject {
	kind := os.Getenv("ROOM")
	if kind != "optional" && kind != "required" {
		return nil
	}
	return []guards.Subject{
		{Name: "room", Limit: guards.Limit(limit), Optional: kind == "optional"},
		{Name: "tenant", Limit: "minute: 100/1m, day: 100000/day", Optional: true},
	}
}
