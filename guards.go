// Package guards has the words of a page of limits. A project has one such page,
// limits/limits.go, which guards init writes:
//
//	var Photos = guards.Guard{
//		Name:    "photos-guard",
//		Message: "Too many requests. Please try again later.",
//		Activities: []guards.Activity{
//			{Name: "upload_photo", Limit: "5/1m", Tiers: guards.Tiers{"premium": "30/1m"}},
//			{Name: "view_photo", Unlimited: true},
//		},
//	}
//
//	var All = []guards.Guard{Photos}
//
// The types are plain data. [Validate] finds mistakes in them.
//
// Three more packages use the page. A Lambda function is one call of package
// function. The command line of the project is one call of package command. The app
// asks the guards by package client, or by a client for another language.
package guards

import "github.com/cric-talk/guards/internal/policy"

// A Guard is one Lambda function and the activities that it decides.
type Guard struct {
	// Name is words that end in -guard, such as photos-guard. It is also the guard's folder
	// in functions/, and no other guard has it.
	Name string

	// Message is the text for a refused user.
	Message string

	// BlockedMessage is the text for a user that an operator has blocked. If it is empty,
	// the text is: You can't do this at the moment.
	BlockedMessage string

	// Activities are what the guard decides, at least one.
	Activities []Activity

	// DelayedQueue tells that the function puts jobs that must wait on the stack's queue. It
	// is started by package function/jobs. Only one guard can have it.
	DelayedQueue bool

	// Description is one sentence of at most 256 bytes about the function in template.yaml.
	// If it is empty, the sentence names the first activity.
	Description string

	// MemorySize is the function's memory in MB, from 128 to 10,240. 0 means 256.
	MemorySize int
}

// An Activity is something that users do, with its limit. No two guards have an
// activity of the same name.
type Activity struct {
	// Name has 1 to 36 characters, each a to z or _. The first and the last are letters.
	Name string

	// Limit is the ordinary limit, for callers whose tier has no limit of its own.
	Limit Limit

	// Tiers holds limits of certain plans. An activity's tiers share one count, so they
	// differ in their numbers and not in their kinds, windows and names.
	Tiers Tiers

	// Label is the limit in words for users, such as 12-hour pins. It may be empty.
	Label string

	// Group names an item that holds the counts of this activity and others, of any guard.
	// The limits of a group have names, and those with the same name share a count. An
	// activity without a group counts alone.
	Group string

	// Hold keeps a check's receipt for 15 minutes or more, and not only for 20 s. The limit
	// then has at most 500 actions a minute.
	Hold bool

	// Subjects are the others in whose limits the activity counts, too, from the narrowest to
	// the widest, such as its room and its tenant. An activity has at most three. Events name
	// them, and each has to allow the action.
	Subjects []Subject

	// Unlimited means that the activity is never counted. Then all fields but Name and Label
	// are empty.
	Unlimited bool
}

// A Subject is someone or something in whose limit an activity counts, too, such as the
// room of a message.
type Subject struct {
	// Name has 1 to 8 letters, each a to z, such as room.
	Name string

	// Limit is the subject's limit, of any kind except a reservoir.
	Limit Limit

	// Tiers holds limits of certain plans of the user, not of the subject.
	Tiers Tiers

	// Optional tells that an event may leave the subject out, and is not limited by it then.
	Optional bool
}

// Tiers holds limits by the caller's plan. A name has 1 to 36 of A to Z, a to z, 0 to 9, _
// and -.
type Tiers map[string]Limit

// A Limit tells how often something can happen:
//
//	10/1m                          at most 10 in each minute of the clock
//	bucket 10/1m burst 15          15 at once, then one every 6 s
//	log 100/12h                    at most 100 in any 12 hours
//	sliding 50/1h                  about 50 in any hour, from two counters
//	reservoir 10/10s ahead 15m     10 in 10 s; the next ones get a later time
//	minute: 10/1m, day: 200/1d     both limits must allow the action
//	100000/1d cost 200             one action takes 200 of the limit
//	100/1h max 10000               100, or the number that the caller gives, up to 10000
//	6000/1m prepaid                a busy instance takes many actions with one write
//	1000/month in Europe/Berlin    from midnight to midnight of a time zone; also day and week
//	writes: 100/1h                 a limit of an activity that has a Group
//
// The empty Limit means that there is no limit. [Validate] tells whether a text
// is a limit.
type Limit string

// String returns the canonical text, such as 10/1m for 10/60s. A wrong text is returned as
// it is. Convert the limit to a string for the text as it was written.
func (l Limit) String() string {
	p, err := l.policy()
	if err != nil {
		return string(l)
	}
	return p.String()
}

// policy reads the limit. The policy of the empty Limit is zero.
func (l Limit) policy() (policy.Policy, error) {
	if l == "" {
		return policy.Policy{}, nil
	}
	return policy.Parse(string(l))
}
