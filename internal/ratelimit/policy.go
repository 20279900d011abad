package ratelimit

import "time"

// A Policy is one way to limit. Its methods are pure. The laws that each must
// keep are the property tests in laws_test.go; listing a policy there is what
// makes it one.
type Policy interface {
	// String is the policy in words, for people.
	String() string

	// Validate says what is wrong with the configuration: nil where nothing is.
	// The other methods may be called only on a valid policy.
	Validate() error

	// Quota is the most that a request can be granted at once, and the time in
	// which so much comes back: what callers are told of the policy.
	Quota() (limit int64, window time.Duration)

	// Place names the item that counts at now, and its end.
	Place(now int64) Place

	// Plan decides n actions at now, n from 1 to the limit.
	Plan(now, n int64) Plan

	// Release gives back n actions of the item that counted them.
	Release(n int64) Update

	// Figures reads s at now.
	Figures(now int64, s State) Figures

	// Wait is how long after now n actions fit in s, if nothing else is counted:
	// 0 where they fit now. A millisecond less is too early.
	Wait(now, n int64, s State) time.Duration
}

// A Place is where a policy counts at a moment.
type Place struct {
	Window  int64 // see [Key]
	Expires int64 // Unix seconds: dropping the item from then on changes no decision
}

// Figures are what a caller is told of a state.
type Figures struct {
	Used      int64 // actions counted in the current window
	Remaining int64 // actions left: the most that Plan takes now; never below 0
	ResetAt   int64 // when all that counts now has ceased to
	WindowKey int64 // floor(now / window)
}
