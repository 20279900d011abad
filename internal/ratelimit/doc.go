// Package ratelimit decides whether an action may go ahead: exactly up to its
// limit, and each request counted once, however often it is sent.
//
// A policy is a pure function from what is stored to a guarded update
// ([Plan]); a [Store] applies that update in one atomic step; the [Limiter] is
// the one loop between them. A refusal is an answer; an error means "I don't
// know".
//
// Times are Unix milliseconds unless a name says otherwise, and go in as
// values: nothing here but the Limiter reads a clock.
package ratelimit
