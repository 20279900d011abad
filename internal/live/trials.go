package live

import (
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// Trials are the limits that were in force before lower ones, by the name of a part (see
// [Target]) and by its tier; "" is the ordinary limit. In shadow mode the lower limit is
// only tried, so a count that fits in the limit before must not be an error.
//
// A table keeps them beside the document, because older code refuses a document with a
// member that it does not know. Such code changes the document alone, so each trial names
// the limit that it belongs to.
type Trials map[string]map[string]Trial

// A Trial is about one limit.
type Trial struct {
	Of     string `json:"of"`     // the limit that is tried; if another one is in force, the trial is over
	Before string `json:"before"` // the limit before it, which is higher
}

// Limit returns the limit before the one that the part has now. It is zero if t is not
// about that one, or if the code can't follow the limit before.
func (t Trial) Limit(code limits.Activity, now limits.Subject, tier string) policy.Policy {
	p, err := Instead(code, now.Name, tier, t.Before)
	if err != nil || t.Of != now.For(tier).String() {
		return policy.Policy{}
	}
	return p
}

// before returns the limits before the trials of a part. If a tier with a limit of its own has
// no trial, its limit before is zero, even if the ordinary limit has a trial.
func (t Trials) before(code limits.Activity, now limits.Subject) limits.Subject {
	tiers := limits.Tiers{}
	for tier := range now.Tiers {
		tiers[tier] = policy.Policy{}
	}
	for tier, one := range t[Target{Activity: code.Name, Subject: now.Name}.String()] {
		tiers[tier] = one.Limit(code, now, tier)
	}
	return limits.Subject{Limit: tiers[""], Tiers: tiers}
}
