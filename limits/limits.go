// Package limits lists every guard and its limits on one page. To change a
// limit, edit its text in limits.go and deploy. For example, "10/1m" allows 10
// actions in each minute, and "20/1m" allows 20. [guards.Limit] describes
// the text form.
//
// After a change, go generate writes what follows from the limits: the guards'
// parts of template.yaml, the table in docs/limits.md, and the clients' lists.
package limits

//go:generate go run ../cmd/guards generate

import "github.com/cric-talk/guards"

// The messages that refused users read.
const (
	tooManyShort = "Rate limit exceeded: Too many requests in a short period"
	tooMany      = "Rate limit exceeded: Too many requests. Please try again later."
	pinsSkipped  = "Pin limit reached (100/12h). Skipped remaining pins."
)

// The guards. Each is one Lambda function.
var (
	Posts = guards.Guard{
		Name:        "posts-guard",
		Message:     tooManyShort,
		Description: "Limits how fast one user creates, changes and deletes posts.",
		Activities: []guards.Activity{
			{Name: "create_post", Limit: "10/1m", Tiers: guards.Tiers{"premium": "20/1m"}},
			{Name: "update_post", Limit: "10/1m", Tiers: guards.Tiers{"premium": "20/1m"}},
			{Name: "delete_post", Limit: "10/1m", Tiers: guards.Tiers{"premium": "20/1m"}},
			{Name: "like", Unlimited: true},
			{Name: "view", Unlimited: true},
		},
	}
	Comments = guards.Guard{
		Name:        "comments-guard",
		Message:     tooMany,
		Description: "Limits how fast one user adds, changes and deletes comments.",
		Activities: []guards.Activity{
			{Name: "add_comment", Limit: "60/1m"},
			{Name: "update_comment", Limit: "60/1m"},
			{Name: "delete_comment", Limit: "60/1m"},
		},
	}
	Rooms = guards.Guard{
		Name:        "rooms-guard",
		Message:     tooManyShort,
		Description: "Limits how fast one user creates, changes and deletes rooms.",
		Activities: []guards.Activity{
			{Name: "create_room", Limit: "10/1m", Tiers: guards.Tiers{"premium": "20/1m"}},
			{Name: "update_room", Limit: "10/1m", Tiers: guards.Tiers{"premium": "20/1m"}},
			{Name: "delete_room", Limit: "10/1m", Tiers: guards.Tiers{"premium": "20/1m"}},
		},
	}
	RoomMessages = guards.Guard{
		Name:        "room-message-guard",
		Message:     tooMany,
		Description: "Limits how fast one user writes, changes and deletes messages in rooms.",
		Activities: []guards.Activity{
			{Name: "create_room_message", Limit: "60/1m"},
			{Name: "update_room_message", Limit: "60/1m"},
			{Name: "delete_room_message", Limit: "60/1m"},
		},
	}
	Pins = guards.Guard{
		Name:        "pins-guard",
		Message:     pinsSkipped,
		Description: "Limits how many pins one account makes in 12 hours.",
		Activities: []guards.Activity{
			{Name: "pin", Limit: "log 100/12h", Label: "12-hour pins"},
		},
	}
	Chat = guards.Guard{
		Name:        "chat-guard",
		Message:     tooMany,
		Description: "Limits how soon one user can send the next message.",
		Activities: []guards.Activity{
			{
				Name:  "send_message",
				Limit: "bucket 1/5s keep 1h",
				Tiers: guards.Tiers{"burst": "bucket 1/5s burst 3 keep 1h"},
			},
		},
	}
	Ingest = guards.Guard{
		Name:        "ingest-guard",
		Message:     tooMany,
		Description: "Limits how often one user ingests data in an hour.",
		Activities: []guards.Activity{
			{Name: "ingest", Limit: "sliding 50/1h"},
		},
	}
	Jobs = guards.Guard{
		Name:         "jobs-guard",
		Message:      tooMany,
		Description:  "Gives each group's jobs their places, and puts jobs that must wait on the delayed queue.",
		DelayedQueue: true,
		Activities: []guards.Activity{
			{Name: "update_member_role", Limit: "reservoir 10/10s ahead 15m"},
		},
	}
)

// All lists the guards.
var All = []guards.Guard{Posts, Comments, Rooms, RoomMessages, Pins, Chat, Ingest, Jobs}
