package live

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// An Override changes one activity. Its limits are in the text form of package
// policy: 20/1m, bucket 10/1m burst 15, or minute: 20/1m, day: 300/1d.
//
// A live limit counts in the same items as the code's limit. So both must have
// the same kind and, except for buckets, the same window: see [policy.Share].
// The options keep and ahead stay as in the code if the text has none. A burst
// does not: bucket 10/1m always means a burst of 10.
type Override struct {
	Limit string            `json:"limit,omitzero"` // for tiers that are not in Tiers; empty: the code's limit
	Tiers map[string]string `json:"tiers,omitempty"`
	Mode  string            `json:"mode,omitzero"` // enforce, shadow or off; empty: the function's own mode
}

var modes = []string{"enforce", "shadow", "off"}

// of applies the override to the activity with this name. Each part that the
// code can't follow keeps its value in last, or else the code's. The errors name
// these parts. It returns false if there is no such activity with a limit.
func (o Override) of(name string, guards limits.Guards, last *Limits) (now activity, problems []error, ok bool) {
	a, err := find(guards, name)
	if err != nil {
		return activity{}, []error{err}, false
	}
	was, ok := last.changed(name)
	if !ok {
		was.Activity = a
	}
	now, problems = o.apply(a, was)
	for i, err := range problems {
		problems[i] = fmt.Errorf("%s: %w", name, err)
	}
	return now, problems, true
}

// find returns the code's activity with this name, if it has a limit.
func find(guards limits.Guards, name string) (limits.Activity, error) {
	for _, g := range guards {
		if a, ok := g.Activity(name); ok {
			if a.Unlimited {
				return a, input.Invalid("activity", input.Show(name), "an activity that has a limit")
			}
			return a, nil
		}
	}
	return limits.Activity{}, input.Invalid("activity", input.Show(name), "an activity that guards limits lists")
}

// apply applies the mode, the limit and the limit of each tier separately to an
// activity of the code. A part with a problem keeps its value in was.
func (o Override) apply(code limits.Activity, was activity) (now activity, problems []error) {
	now = activity{code, o.Mode}
	if o.Mode != "" && !slices.Contains(modes, o.Mode) {
		problems = append(problems, input.Invalid("mode", input.Show(o.Mode), "enforce, shadow or off"))
		now.mode = was.mode
	}
	if o.Limit != "" {
		p, err := instead(code.Limit, o.Limit)
		if err != nil {
			problems = append(problems, err)
			p = was.Limit
		}
		now.Limit = p
	}
	now.Tiers = maps.Clone(code.Tiers)
	for _, tier := range slices.Sorted(maps.Keys(o.Tiers)) {
		p, err := instead(code.For(tier), o.Tiers[tier])
		if err != nil {
			problems = append(problems, fmt.Errorf("tier %q: %w", tier, err))
			if p = was.Tiers[tier]; p.IsZero() {
				continue // a tier that never had a limit of its own
			}
		}
		if now.Tiers == nil {
			now.Tiers = make(limits.Tiers)
		}
		now.Tiers[tier] = p
	}
	return now, problems
}

// empty reports whether the override changes nothing.
func (o Override) empty() bool { return o.Limit == "" && o.Mode == "" && len(o.Tiers) == 0 }

// without returns the parts of o that differ from those of was.
func (o Override) without(was Override) Override {
	if o.Limit == was.Limit {
		o.Limit = ""
	}
	if o.Mode == was.Mode {
		o.Mode = ""
	}
	o.Tiers = maps.Clone(o.Tiers)
	maps.DeleteFunc(o.Tiers, func(tier, limit string) bool {
		before, ok := was.Tiers[tier]
		return ok && before == limit
	})
	return o
}

// instead returns the policy that replaces the code's policy: text, with the
// options of the code's policy that text leaves out. It returns an error if the
// two cannot share a count. All policies of an activity share one count, so it
// is enough to compare a live policy with one policy of the code.
func instead(code policy.Policy, text string) (policy.Policy, error) {
	p, err := policy.Parse(text)
	if err != nil {
		return p, err
	}
	if err := policy.Share(code, p); err != nil {
		return policy.Policy{}, fmt.Errorf("a live limit keeps the kind and the window of the code's limit: %w", err)
	}
	return p.OptionsOf(code), nil
}

// canonical returns the text form in which the settings store a limit. It
// returns a text that is not a limit unchanged, and validate refuses that text
// later.
func canonical(text string) string {
	if p, err := policy.Parse(text); err == nil {
		return p.String()
	}
	return text
}
