// Package live is what operators change without a deploy: limits, modes and
// grants, kept as one document beside what is counted. A guard follows it
// within half a minute.
package live

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// Settings are the document. The zero Settings change nothing.
type Settings struct {
	Activities map[string]Override `json:"activities,omitempty"`
	Grants     []Grant             `json:"grants,omitempty"`
}

// An Override is what is changed of an activity. Its limits are rates as
// [limits.ParseRate] takes them, a bucket's with a burst: 10/1m+15. Several
// limits are listed in the code's order: 10/1m,200/24h.
type Override struct {
	Limit string            `json:"limit,omitzero"` // for everyone whose tier is not in Tiers; empty: the code's
	Tiers map[string]string `json:"tiers,omitempty"`
	Mode  string            `json:"mode,omitzero"` // enforce, shadow or off; empty: the function's own
}

// A Grant gives a user a role or a tier for a while.
type Grant struct {
	UserID string    `json:"userId"`
	Role   string    `json:"role,omitzero"`
	Tier   string    `json:"tier,omitzero"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// mostGrants keeps the document within a tenth of what an item may be.
const mostGrants = 200

var modes = []string{"enforce", "shadow", "off"}

// Parse reads a document, whatever the code makes of it.
func Parse(document []byte) (s Settings, err error) {
	if err := json.Unmarshal(document, &s, json.RejectUnknownMembers(true)); err != nil {
		return Settings{}, fmt.Errorf("live limits can't be read: %w", err)
	}
	return s, nil
}

// Document is the settings as they are kept.
func (s Settings) Document() ([]byte, error) { return json.Marshal(s, json.Deterministic(true)) }

// compile applies the settings to the code's guards. What can't be applied, or
// can't any more since the code has changed, stays as it was last, so that the
// rest holds; the error says what.
func (s Settings) compile(guards []limits.Guard, last *Limits) (*Limits, error) {
	l := &Limits{activities: make(map[string]activity), grants: make(map[string][]Grant)}
	var passed []error
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		a, err := s.Activities[name].of(name, guards)
		if err != nil {
			passed = append(passed, err)
			if was, ok := last.changed(name); ok {
				l.activities[name] = was
			}
			continue
		}
		l.activities[name] = a
	}
	for _, g := range s.Grants {
		l.grants[g.UserID] = append(l.grants[g.UserID], g)
	}
	return l, errors.Join(passed...)
}

// validate says what is wrong with what s changes of before.
func (s Settings) validate(before Settings, guards []limits.Guard) error {
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		if was, ok := before.Activities[name]; ok && reflect.DeepEqual(was, s.Activities[name]) {
			continue
		}
		if _, err := s.Activities[name].of(name, guards); err != nil {
			return err
		}
	}
	for _, g := range s.Grants {
		if slices.Contains(before.Grants, g) {
			continue
		}
		if err := g.validate(); err != nil {
			return err
		}
	}
	if len(s.Grants) > max(mostGrants, len(before.Grants)) {
		return fmt.Errorf("%d grants, want at most %d: revoke what is not needed", len(s.Grants), mostGrants)
	}
	return nil
}

// of is the override of the activity that is called name.
func (o Override) of(name string, guards []limits.Guard) (activity, error) {
	a, err := find(guards, name)
	if err != nil {
		return activity{}, err
	}
	changed, err := o.apply(a)
	if err != nil {
		return activity{}, fmt.Errorf("%s: %w", name, err)
	}
	return changed, nil
}

func find(guards []limits.Guard, name string) (limits.Activity, error) {
	for _, g := range guards {
		if a, ok := g.Activity(name); ok {
			if a.Unlimited {
				return a, input.Invalid("activity", input.Show(name), "one that has a limit")
			}
			return a, nil
		}
	}
	return limits.Activity{}, input.Invalid("activity", input.Show(name), "one of guards limits")
}

// apply changes the code's activity.
func (o Override) apply(a limits.Activity) (activity, error) {
	if o.Mode != "" && !slices.Contains(modes, o.Mode) {
		return activity{}, input.Invalid("mode", input.Show(o.Mode), "enforce, shadow or off")
	}
	ordinary := a.Limit
	if o.Limit != "" {
		var err error
		if a.Limit, err = withRates(ordinary, o.Limit); err != nil {
			return activity{}, err
		}
	}
	a.Tiers = maps.Clone(a.Tiers)
	for tier, rate := range o.Tiers {
		p, err := withRates(a.For(tier), rate)
		if err != nil {
			return activity{}, fmt.Errorf("tier %q: %w", tier, err)
		}
		if a.Tiers == nil {
			a.Tiers = make(limits.Tiers)
		}
		a.Tiers[tier] = p
	}
	for _, p := range a.Tiers {
		if err := ratelimit.Share(a.Limit, p); err != nil {
			return activity{}, fmt.Errorf("a tier %w", err)
		}
	}
	return activity{a, o.Mode}, nil
}

func (g Grant) validate() error {
	if err := input.CheckUserID(g.UserID); err != nil {
		return err
	}
	switch {
	case (g.Role == "") == (g.Tier == ""):
		return errors.New("a grant gives a role or a tier, one of them")
	case g.Until.IsZero():
		return errors.New("a grant needs an end")
	case g.Reason == "" || len(g.Reason) > 200:
		return errors.New("a grant needs a reason of up to 200 characters")
	}
	return nil
}

// Limits are the code's limits as the settings change them. The nil Limits
// change nothing.
type Limits struct {
	activities map[string]activity
	grants     map[string][]Grant
}

type activity struct {
	limits.Activity
	mode string
}

// Activity is the activity as it is now, and its mode; an empty mode is the
// function's own.
func (l *Limits) Activity(a limits.Activity) (now limits.Activity, mode string) {
	if changed, ok := l.changed(a.Name); ok {
		return changed.Activity, changed.mode
	}
	return a, ""
}

func (l *Limits) changed(name string) (a activity, ok bool) {
	if l != nil {
		a, ok = l.activities[name]
	}
	return a, ok
}

// Granted are the roles that a user has besides the caller's, and the tier
// instead of the caller's; empty: none.
func (l *Limits) Granted(userID string, now time.Time) (roles []string, tier string) {
	if l == nil {
		return nil, ""
	}
	for _, g := range l.grants[userID] {
		switch {
		case !now.Before(g.Until):
		case g.Role != "":
			roles = append(roles, g.Role)
		default:
			tier = g.Tier
		}
	}
	return roles, tier
}
