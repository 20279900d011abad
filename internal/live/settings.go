// Package live lets operators change limits without a deploy.
//
// The [Settings] are one document: changed limits and modes of activities, and
// grants of a role or a tier to a user. They are kept in a [Table]. Operators
// change them with [Edit], which refuses what the code could not follow. Each
// instance of a guard has a [Follower], which applies a change within 30 s.
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

// Settings are the content of the document. The zero Settings change nothing.
type Settings struct {
	Activities map[string]Override `json:"activities,omitempty"`
	Grants     []Grant             `json:"grants,omitempty"`
}

// An Override changes one activity. Its limits are rates, in the form that
// [limits.ParseRate] reads: 10/1m. A bucket may have a burst: 10/1m+15. Several
// limits have the order of the code: 10/1m,200/24h.
type Override struct {
	Limit string            `json:"limit,omitzero"` // for callers whose tier is not in Tiers; empty for the code's limit
	Tiers map[string]string `json:"tiers,omitempty"`
	Mode  string            `json:"mode,omitzero"` // enforce, shadow or off; empty for the mode of the function
}

// A Grant gives a user either a role or a tier, until a time.
type Grant struct {
	UserID string    `json:"userId"`
	Role   string    `json:"role,omitzero"`
	Tier   string    `json:"tier,omitzero"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// mostGrants keeps the document below a tenth of the size that DynamoDB allows.
const mostGrants = 200

var modes = []string{"enforce", "shadow", "off"}

// Parse reads a document. It does not check whether the code can follow it.
func Parse(document []byte) (s Settings, err error) {
	if err := json.Unmarshal(document, &s, json.RejectUnknownMembers(true)); err != nil {
		return Settings{}, fmt.Errorf("the live limits cannot be read: %w", err)
	}
	return s, nil
}

// Document returns the settings as they are stored.
func (s Settings) Document() ([]byte, error) { return json.Marshal(s, json.Deterministic(true)) }

// compile applies the settings to the code's guards. An override that the code
// cannot follow, for example after a deploy, must not stop the others. Its
// activity keeps the limits that it had in last, and the error names it.
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

// validate checks what differs between before and s.
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
		return fmt.Errorf("there would be %d grants, want at most %d: revoke some first", len(s.Grants), mostGrants)
	}
	return nil
}

// of applies the override to the activity with this name.
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
				return a, input.Invalid("activity", input.Show(name), "an activity that has a limit")
			}
			return a, nil
		}
	}
	return limits.Activity{}, input.Invalid("activity", input.Show(name), "an activity that guards limits lists")
}

// apply applies the override to an activity of the code.
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
		return errors.New("a grant needs either a role or a tier")
	case g.Until.IsZero():
		return errors.New("a grant needs a time when it ends")
	case g.Reason == "" || len(g.Reason) > 200:
		return errors.New("a grant needs a reason of 1 to 200 characters")
	}
	return nil
}

// Limits are the code's limits with the settings applied. Nil changes nothing.
type Limits struct {
	activities map[string]activity
	grants     map[string][]Grant
}

type activity struct {
	limits.Activity
	mode string
}

// Activity returns an activity of the code as it is now, and its mode. An empty
// mode stands for the mode of the function.
func (l *Limits) Activity(a limits.Activity) (now limits.Activity, mode string) {
	if changed, ok := l.changed(a.Name); ok {
		return changed.Activity, changed.mode
	}
	return a, ""
}

// changed returns an activity that the settings change, and reports whether they
// do.
func (l *Limits) changed(name string) (a activity, ok bool) {
	if l != nil {
		a, ok = l.activities[name]
	}
	return a, ok
}

// Granted returns what operators have granted to a user at this time: roles, which
// add to those of the caller, and a tier, which replaces the caller's. Empty means
// none.
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
