// Package limits lists every guard and its limits on one page. To change a
// limit, edit its text in limits.go and deploy. For example, "10/1m" allows 10
// actions in each minute, and "20/1m" allows 20. Package policy describes the
// text form.
//
// After a change, go generate writes what follows from the limits: the guards'
// parts of template.yaml, the table in docs/limits.md, and the clients' lists.
package limits

//go:generate go run ../cmd/guards generate

import (
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// The messages that refused users read.
const (
	tooManyShort = "Rate limit exceeded: Too many requests in a short period"
	tooMany      = "Rate limit exceeded: Too many requests. Please try again later."
	pinsSkipped  = "Pin limit reached (100/12h). Skipped remaining pins."
)

// The guards. Each is one Lambda function.
var (
	Posts = limits.Guard{
		Name:        "posts-guard",
		Message:     tooManyShort,
		Description: "Limits how fast one user creates, changes and deletes posts.",
		Activities: []limits.Activity{
			{Name: "create_post", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"premium": policy.Must("20/1m")}},
			{Name: "update_post", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"premium": policy.Must("20/1m")}},
			{Name: "delete_post", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"premium": policy.Must("20/1m")}},
			{Name: "like", Unlimited: true},
			{Name: "view", Unlimited: true},
		},
	}
	Comments = limits.Guard{
		Name:        "comments-guard",
		Message:     tooMany,
		Description: "Limits how fast one user adds, changes and deletes comments.",
		Activities: []limits.Activity{
			{Name: "add_comment", Limit: policy.Must("60/1m")},
			{Name: "update_comment", Limit: policy.Must("60/1m")},
			{Name: "delete_comment", Limit: policy.Must("60/1m")},
		},
	}
	Rooms = limits.Guard{
		Name:        "rooms-guard",
		Message:     tooManyShort,
		Description: "Limits how fast one user creates, changes and deletes rooms.",
		Activities: []limits.Activity{
			{Name: "create_room", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"premium": policy.Must("20/1m")}},
			{Name: "update_room", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"premium": policy.Must("20/1m")}},
			{Name: "delete_room", Limit: policy.Must("10/1m"), Tiers: limits.Tiers{"premium": policy.Must("20/1m")}},
		},
	}
	RoomMessages = limits.Guard{
		Name:        "room-message-guard",
		Message:     tooMany,
		Description: "Limits how fast one user writes, changes and deletes messages in rooms.",
		Activities: []limits.Activity{
			{Name: "create_room_message", Limit: policy.Must("60/1m")},
			{Name: "update_room_message", Limit: policy.Must("60/1m")},
			{Name: "delete_room_message", Limit: policy.Must("60/1m")},
		},
	}
	Pins = limits.Guard{
		Name:        "pins-guard",
		Message:     pinsSkipped,
		Description: "Limits how many pins one account makes in 12 hours.",
		Activities: []limits.Activity{
			{Name: "pin", Limit: policy.Must("log 100/12h"), Label: "12-hour pins"},
		},
	}
	Chat = limits.Guard{
		Name:        "chat-guard",
		Message:     tooMany,
		Description: "Limits how soon one user can send the next message.",
		Activities: []limits.Activity{
			{
				Name:  "send_message",
				Limit: policy.Must("bucket 1/5s keep 1h"),
				Tiers: limits.Tiers{"burst": policy.Must("bucket 1/5s burst 3 keep 1h")},
			},
		},
	}
	Ingest = limits.Guard{
		Name:        "ingest-guard",
		Message:     tooMany,
		Description: "Limits how often one user ingests data in an hour.",
		Activities: []limits.Activity{
			{Name: "ingest", Limit: policy.Must("sliding 50/1h")},
		},
	}
	Jobs = limits.Guard{
		Name:         "jobs-guard",
		Message:      tooMany,
		Description:  "Gives each group's jobs their places, and puts jobs that must wait on the delayed queue.",
		DelayedQueue: true,
		Activities: []limits.Activity{
			{Name: "update_member_role", Limit: policy.Must("reservoir 10/10s ahead 15m")},
		},
	}
)

// All lists the guards.
var All = limits.Guards{Posts, Comments, Rooms, RoomMessages, Pins, Chat, Ingest, Jobs}
