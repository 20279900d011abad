// Package oracle models the contract of limits: what docs/policies.md promises of each
// kind, of calendar windows and of several limits that count together.
//
// The simulation and the histories judge by these models. They share no code with
// package policy, so that an error there can't hide here. Of that package they use only
// [policy.Rate], which holds the numbers of a limit.
package oracle

import (
	"fmt"

	"github.com/cric-talk/guards/internal/policy"
)

// A Model knows what one limit promises. Models count in units, and get actions in
// the order of the store's updates. Times are Unix milliseconds.
//
// Clocks differ, so an action can be over for one clock and count for another.
// Strict figures count everything that counts for the clock at hand. The others
// leave out what is over for any clock that has counted since. With one clock
// both are the same.
type Model interface {
	// At returns when an action that comes at now counts. It is later than now
	// if a clock ahead has begun something that has not begun at now.
	At(now int64) int64

	// Used returns how much counts at now, which is a time that At has returned. Fits reports whether n more fit. Resets
	// returns when everything that counts now has expired.
	Used(now int64, r policy.Rate, strict bool) int64
	Fits(now, n int64, r policy.Rate, strict bool) bool
	Resets(now int64, r policy.Rate, strict bool) int64

	// Count counts n at now.
	Count(now, n int64, r policy.Rate)

	// Holds reports whether n of the moment at still count at now, so that they can be
	// given back. Back gives them back.
	Holds(now, at, n int64, strict bool) bool
	Back(now, at, n int64)

	// Counted returns how much a write of the moment at has counted. It compares the
	// attributes of the item before and after the write.
	Counted(at int64, r policy.Rate, before, after policy.State) int64

	// Same reports whether the item's attributes hold what the model holds.
	Same(s policy.State) bool

	// String describes what the model holds. Models that hold the same have the same text.
	String() string

	// Clone returns a copy that can go its own way.
	Clone() Model

	// Deployed returns the model of the same limit with another window. It keeps
	// what still counts of the actions so far.
	Deployed(window int64) Model
}

// models makes the model of each kind. Prefix stands before each attribute, such
// as "minute_"; it is empty for a limit that has the item for itself.
var models = map[string]func(r policy.Rate, prefix string) Model{
	"fixed": func(r policy.Rate, prefix string) Model {
		return &fixed{prefix: prefix, windows: WindowsOf(r), counts: counts{}}
	},
	"log": func(r policy.Rate, prefix string) Model {
		return &slots{names: slotNames(prefix), window: r.Window.Milliseconds()}
	},
	"sliding": func(r policy.Rate, prefix string) Model {
		return &sliding{prefix: prefix, window: r.Window.Milliseconds(), counts: counts{}}
	},
	"bucket": func(_ policy.Rate, prefix string) Model { return &bucket{prefix: prefix} },
	"reservoir": func(r policy.Rate, prefix string) Model {
		return &reservoir{prefix: prefix, window: r.Window.Milliseconds()}
	},
	"lockout": func(_ policy.Rate, prefix string) Model { return &lockout{prefix: prefix} },
}

// New returns the model of a limit. It is an error if no model knows the kind.
func New(r policy.Rate) (Model, error) {
	kind, ok := models[r.Kind]
	if !ok {
		return nil, fmt.Errorf("there is no model of the kind %q, so no proof can judge it: write one in internal/proofs/oracle from what docs/policies.md promises", r.Kind)
	}
	prefix := ""
	if r.Name != "" {
		prefix = r.Name + "_"
	}
	return kind(r, prefix), nil
}
