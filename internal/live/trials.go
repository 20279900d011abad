package live

import (
	"maps"

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

// WithTrials returns the settings with the trials that they have after an edit of before.
//
// A trial begins when the mode becomes shadow, or when a limit is lowered. A further limit
// that is tried in shadow mode keeps the limit from before the trial. Without a live mode,
// the function's own mode may be shadow, so the highest limit so far is kept.
func (s Settings) WithTrials(before Settings, guards limits.Guards) Settings {
	was, _ := before.Limits(guards, nil)
	now, _ := s.Limits(guards, nil)
	s.Trials = Trials{}
	for _, code := range guards.All {
		old, oldMode := was.Activity(code)
		next, mode := now.Activity(code)
		begins := mode == Shadow && oldMode != Shadow && oldMode != Off
		for _, part := range code.Parts() {
			name := Target{Activity: code.Name, Subject: part.Name}.String()
			kept := before.Trials[name]
			if begins {
				kept = nil
			}
			if tried := trialsOf(code, old.Part(part.Name), next.Part(part.Name), kept); len(tried) > 0 {
				s.Trials[name] = tried
			}
		}
	}
	return s
}

// trialsOf returns the trials of a part of an activity whose limits change from old to
// next. Kept are those before.
func trialsOf(code limits.Activity, old, next limits.Subject, kept map[string]Trial) map[string]Trial {
	tiers, trials := byTier(old), map[string]Trial{}
	maps.Copy(tiers, next.Tiers)
	for tier := range tiers {
		before, now := old.For(tier), next.For(tier)
		if p := kept[tier].before(code, old, tier); p.Max() > before.Max() {
			before = p
		}
		switch one, ok := kept[tier]; {
		case ok && old.For(tier).Equal(now): // even if this code can't follow it
			trials[tier] = one
		case before.Max() > now.Max():
			trials[tier] = Trial{Of: now.String(), Before: before.String()}
		}
	}
	return trials
}

// before returns the limit before the one that the part has now. It is zero if t is not
// about that one, or if the code can't follow the limit before.
func (t Trial) before(code limits.Activity, now limits.Subject, tier string) policy.Policy {
	p, err := Instead(code, now.Name, tier, t.Before)
	if err != nil || t.Of != now.For(tier).String() {
		return policy.Policy{}
	}
	return p
}

// before returns the limits before the trials of a part. A tier with a limit of its own and
// without a trial has none, even if the ordinary limit has one.
func (t Trials) before(code limits.Activity, now limits.Subject) limits.Subject {
	tiers := limits.Tiers{}
	for tier := range now.Tiers {
		tiers[tier] = policy.Policy{}
	}
	for tier, one := range t[Target{Activity: code.Name, Subject: now.Name}.String()] {
		tiers[tier] = one.before(code, now, tier)
	}
	return limits.Subject{Limit: tiers[""], Tiers: tiers}
}
