package oracle

import (
	"cmp"

	"github.com/cric-talk/guards/internal/policy"
)

// A caller gives a number for a limit with a max. The models know what it means without
// package policy: the limit becomes the number, and a bucket changes as a whole.

// Numbered returns a limit with the number that a caller gives, and the most units at once
// that it admits. These are 0 if the number has no room for an action. What is given back then
// goes by a limit of one action.
func Numbered(r policy.Rate, number int64) (numbered policy.Rate, most int64) {
	units, action := min(number, r.Max), Cost(r)
	if r.Kind == "bucket" {
		r.Burst = max(action, cmp.Or(r.Burst, r.Limit)*units/r.Limit)
		most = r.Burst
	} else {
		most = units
	}
	if r.Limit = units; units < action {
		r.Limit, most = action, 0
	}
	return r, most
}

// Highest returns the limit of r whichever number a caller gives, in actions.
func Highest(r policy.Rate) int64 { return max(r.Limit, r.Max) / Cost(r) }

// rise returns how many times as much as now a limit can count, by another number.
func rise(r policy.Rate) int64 { return max(1, (r.Max+r.Limit-1)/r.Limit) }
