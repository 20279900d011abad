// Package guards has the types of a page of limits. A project with limits of its
// own has one such page, limits/limits.go, which guards init writes:
//
//	var Photos = guards.Guard{
//		Name:    "photos-guard",
//		Message: "Too many requests. Please try again later.",
//		Activities: []guards.Activity{
//			{Name: "upload_photo", Limit: guards.Limit("5/1m")},
//			{Name: "view_photo", Unlimited: true},
//		},
//	}
//
//	var All = []guards.Guard{Photos}
//
// Three more packages use the page. A Lambda function is one call of package
// function, the command line of the project is one call of package command, and the
// app asks the guards by package client or by a client for another language.
package guards

import (
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// A Guard is one Lambda function and the activities that it decides.
//
//	Name          words that end in -guard, such as photos-guard; also its folder in functions/
//	Message       the text for a refused user
//	Activities    at least one
//
// These describe the function in template.yaml. No decision depends on them.
//
//	Description   one sentence; empty: it names the first activity
//	MemorySize    in MB, 128 to 10,240; 0: 256
//	DelayedQueue  the function puts jobs that must wait on a queue, and is started by package function/jobs
type Guard = limits.Guard

// An Activity is something that users do, with its limit. No two guards have an
// activity of the same name.
//
//	Name       1 to 36 characters, each a to z or _; the first and the last are letters
//	Limit      the ordinary limit, for callers whose tier has no limit of its own
//	Tiers      limits of certain plans; may be empty
//	Label      the limit in words for users, such as 12-hour pins; may be empty
//	Group      the item in which the activity counts with others, of any guard; their limits
//	           have names, and those with the same name share a count; empty: it counts alone
//	Hold       a check's receipt lasts for 15 minutes or more, and not only for 20 s; at most 500 actions a minute
//	Subjects   the others in whose limits the activity counts, too: at most 3, from the narrowest to the
//	           widest, such as its room and its tenant; events name them, and each has to allow the action
//	Unlimited  never counted; then the fields above, but for Name and Label, must be empty
type Activity = limits.Activity

// A Subject is someone or something in whose limit an activity counts, too, such as the
// room of a message.
//
//	Name      1 to 8 letters, each a to z, such as room
//	Limit     as of an activity; of any kind but a reservoir
//	Tiers     limits of certain plans; may be empty
//	Optional  an event may leave it out, and is not limited by it then
type Subject = limits.Subject

// Tiers holds limits by the caller's plan. An activity's tiers share one count.
type Tiers = limits.Tiers

// Limit reads a limit from its text:
//
//	10/1m                          at most 10 in each minute of the clock
//	bucket 10/1m burst 15          15 at once, then one every 6 s
//	log 100/12h                    at most 100 in any 12 hours
//	sliding 50/1h                  about 50 in any hour, from two counters
//	reservoir 10/10s ahead 15m     10 in 10 s; the next ones get a later time
//	minute: 10/1m, day: 200/1d     both limits must allow the action
//	100000/1d cost 200             one action takes 200 of the limit
//	1000/month in Europe/Berlin    from midnight to midnight of a time zone; also day and week
//	writes: 100/1h                 a limit of an activity that has a Group
//
// It panics if the text is wrong, with an error that says what is accepted.
func Limit(text string) policy.Policy { return policy.Must(text) }
