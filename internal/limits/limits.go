// Package limits is every guard and its limits, on one page: the place to
// change a limit.
package limits

import (
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// Words for the person at the other end.
const (
	tooManyShort = "Rate limit exceeded: Too many requests in a short period"
	tooMany      = "Rate limit exceeded: Too many requests. Please try again later."
)

// The guards, each one Lambda function.
var (
	Posts = Guard{
		Name:    "posts-guard",
		Message: tooManyShort,
		Activities: []Activity{
			{Name: "create_post", Limit: perMinute(10), Tiers: Tiers{"premium": perMinute(20)}},
			{Name: "update_post", Limit: perMinute(10), Tiers: Tiers{"premium": perMinute(20)}},
			{Name: "delete_post", Limit: perMinute(10), Tiers: Tiers{"premium": perMinute(20)}},
			{Name: "like", Unlimited: true},
			{Name: "view", Unlimited: true},
		},
	}
	Comments = Guard{
		Name:    "comments-guard",
		Message: tooMany,
		Activities: []Activity{
			{Name: "add_comment", Limit: perMinute(60)},
			{Name: "update_comment", Limit: perMinute(60)},
			{Name: "delete_comment", Limit: perMinute(60)},
		},
	}
	Rooms = Guard{
		Name:    "rooms-guard",
		Message: tooManyShort,
		Activities: []Activity{
			{Name: "create_room", Limit: perMinute(10), Tiers: Tiers{"premium": perMinute(20)}},
			{Name: "update_room", Limit: perMinute(10), Tiers: Tiers{"premium": perMinute(20)}},
			{Name: "delete_room", Limit: perMinute(10), Tiers: Tiers{"premium": perMinute(20)}},
		},
	}
	RoomMessages = Guard{
		Name:    "room-message-guard",
		Message: tooMany,
		Activities: []Activity{
			{Name: "create_room_message", Limit: perMinute(60)},
			{Name: "update_room_message", Limit: perMinute(60)},
			{Name: "delete_room_message", Limit: perMinute(60)},
		},
	}
)

// All lists the guards.
var All = []Guard{Posts, Comments, Rooms, RoomMessages}

// perMinute allows n actions in each minute of the clock.
func perMinute(n int64) ratelimit.Policy {
	return ratelimit.FixedWindow{Limit: n, Window: time.Minute}
}
