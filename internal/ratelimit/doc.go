// Package ratelimit decides whether an action may go ahead. It admits exactly
// as many as the limit says, and counts each request once, however often it is
// sent.
//
// A [policy.Policy] is the rule; it is a pure function of a state. A [Store]
// keeps the states and changes one item in one atomic step. The [Limiter] is
// the loop between them:
//
//  1. It asks its [Memory] what this process knows about the item. If that
//     refuses, and is at most a second old, the answer is "limited" without a
//     request.
//  2. It plans an update from what it knows, or from an empty item, and sends
//     it.
//  3. If the store refuses the update, its answer contains the item. The
//     limiter plans again from that item, or answers "limited".
//  4. It teaches its memory the item of the last answer.
//
// For example, two processes send "add 1 if activityCount <= 9" for the same
// user when 9 are counted. The store applies one and refuses the other with the
// item, which now holds 10. The second process plans again, has no room, and
// refuses.
//
// A refusal is an answer. An error means "I don't know": the store could not be
// asked. A request with [Request.Alone] then gets a decision from memory
// instead, and the decision carries the [Decision.Outage].
//
// Times are Unix milliseconds unless a name says otherwise. Only the limiter
// reads a clock.
package ratelimit
