// Package ratelimit decides whether an action may go ahead. It admits exactly
// as many actions as the limit says. It counts a request once, even if it is sent
// again within 20 s.
//
// A program makes one [Limiter] and asks it about each [Request]:
//
//	limiter := &ratelimit.Limiter{Store: new(memstore.Store)}
//	d, err := limiter.Check(ctx, ratelimit.Request{
//		UserID: "u1", Activity: "vote", Policy: policy.Must("10/1m"),
//		Count: 1, ID: "r1",
//	})
//	// d.Allowed is true, and d.Remaining is 9
//
// A [policy.Policy] is the rule. It decides from a state, without side effects.
// A [Store] keeps the states and changes one item in one atomic step. The
// limiter is the loop between them:
//
//  1. It asks its [Memory] what this process knows about the item. If that
//     refuses, and is at most a second old, the answer is "limited" without a
//     request.
//  2. It plans an update from what it knows, or from an empty item, and sends
//     it.
//  3. If the store refuses the update, its answer contains the item. The
//     limiter plans again from that item, or answers "limited".
//  4. It stores the item of the last answer in its memory.
//
// For example, 9 actions of a user are counted, and two processes send "add 1
// if activityCount <= 9" at the same time. The store applies one update. It
// refuses the other one and returns the item, which then holds 10. The second
// process plans again, finds no room, and answers "limited".
//
// A refusal is an answer. An error means "I don't know": the store gave no
// usable answer. A request with [Request.Alone] then gets a decision from
// memory instead of the error, and [Decision.Outage] holds the error.
//
// Times are Unix milliseconds unless a name says otherwise. Only the limiter
// reads a clock.
package ratelimit
