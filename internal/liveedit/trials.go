package liveedit

import (
	"maps"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// trials returns the trials after an edit that makes now of before.
//
// A trial begins when the mode becomes shadow, or when a limit is lowered. A further limit
// that is tried in shadow mode keeps the limit from before the trial. Without a live mode,
// the function's own mode may be shadow, so the highest limit so far is kept.
func trials(before, now live.Settings, guards limits.Guards) live.Trials {
	was, _ := before.Limits(guards, nil)
	is, _ := now.Limits(guards, nil)
	all := live.Trials{}
	for _, code := range guards.All {
		old, oldMode := was.Activity(code)
		next, mode := is.Activity(code)
		begins := mode == live.Shadow && oldMode != live.Shadow && oldMode != live.Off
		for _, part := range code.Parts() {
			name := live.Target{Activity: code.Name, Subject: part.Name}.String()
			kept := before.Trials[name]
			if begins {
				kept = nil
			}
			if tried := trialsOf(code, old.Part(part.Name), next.Part(part.Name), kept); len(tried) > 0 {
				all[name] = tried
			}
		}
	}
	return all
}

// trialsOf returns the trials of a part of an activity whose limits change from old to
// next. Kept are those before.
func trialsOf(code limits.Activity, old, next limits.Subject, kept map[string]live.Trial) map[string]live.Trial {
	tiers, trials := limits.Tiers{"": old.Limit}, map[string]live.Trial{}
	maps.Copy(tiers, old.Tiers)
	maps.Copy(tiers, next.Tiers)
	for tier := range tiers {
		before, now := old.For(tier), next.For(tier)
		if p := kept[tier].Limit(code, old, tier); p.Max() > before.Max() {
			before = p
		}
		switch one, ok := kept[tier]; {
		case ok && old.For(tier).Equal(now): // even if this code can't follow it
			trials[tier] = one
		case before.Max() > now.Max():
			trials[tier] = live.Trial{Of: now.String(), Before: before.String()}
		}
	}
	return trials
}
