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
	pinsSkipped  = "Pin limit reached (100/12h). Skipped remaining pins."
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
	Pins = Guard{
		Name:    "pins-guard",
		Message: pinsSkipped,
		Activities: []Activity{
			{Name: "pin", Limit: slidingLog(100, 12*time.Hour), Label: "12-hour pins"},
		},
	}
	Chat = Guard{
		Name:    "chat-guard",
		Message: tooMany,
		Activities: []Activity{
			{Name: "send_message", Limit: oneEvery(5*time.Second, 1), Tiers: Tiers{"burst": oneEvery(5*time.Second, 3)}},
		},
	}
	Ingest = Guard{
		Name:    "ingest-guard",
		Message: tooMany,
		Activities: []Activity{
			{Name: "ingest", Limit: slidingWindow(50, time.Hour)},
		},
	}
	Jobs = Guard{
		Name:    "jobs-guard",
		Message: tooMany,
		Activities: []Activity{
			{Name: "update_member_role", Limit: reservoir(10, 10*time.Second)},
		},
	}
)

// All lists the guards.
var All = []Guard{Posts, Comments, Rooms, RoomMessages, Pins, Chat, Ingest, Jobs}

// perMinute allows n actions in each minute of the clock.
func perMinute(n int64) ratelimit.Policy {
	return ratelimit.FixedWindow{Limit: n, Window: time.Minute}
}

// slidingLog allows n actions in any time of window, exactly.
func slidingLog(n int64, window time.Duration) ratelimit.Policy {
	return ratelimit.SlidingLog{Limit: n, Window: window}
}

// slidingWindow allows n actions in any time of window, as far as two counts
// can tell.
func slidingWindow(n int64, window time.Duration) ratelimit.Policy {
	return ratelimit.SlidingWindow{Limit: n, Window: window}
}

// oneEvery allows burst actions at once, and then one every interval. Who has
// been idle for an hour is forgotten.
func oneEvery(interval time.Duration, burst int64) ratelimit.Policy {
	return ratelimit.TokenBucket{Limit: 1, Window: interval, Burst: burst, Keep: time.Hour}
}

// reservoir allows n actions in each window of the clock, and delays the rest by
// up to 15 minutes: so long SQS holds a message back.
func reservoir(n int64, window time.Duration) ratelimit.Policy {
	return ratelimit.Reservoir{Limit: n, Window: window, Ahead: 15 * time.Minute}
}
