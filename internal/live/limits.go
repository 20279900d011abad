package live

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
)

// Limits are the code's limits with the settings applied. With nil Limits, the
// code's limits apply unchanged.
type Limits struct {
	activities map[string]activity
	grants     map[string][]Grant
}

type activity struct {
	limits.Activity
	mode string
}

// compile applies the settings to the code's guards. What the code can't follow,
// for example after a deploy or an edit by hand, must not stop the rest. It keeps
// the value that it had in last, and the error names it.
func (s Settings) compile(guards limits.Guards, last *Limits) (*Limits, error) {
	l := &Limits{activities: make(map[string]activity), grants: make(map[string][]Grant)}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		a, wrong, ok := s.Activities[name].of(name, guards, last)
		if !ok { // the name may be a user id
			wrong = []error{errors.New("an override is of an activity without a limit in the code")}
		} else {
			l.activities[name] = a
		}
		problems = append(problems, wrong...)
	}
	for _, g := range s.Grants {
		l.grants[g.UserID] = append(l.grants[g.UserID], g)
	}
	return l, errors.Join(problems...)
}

// Problems returns what the code can't follow. The errors name activities of the
// settings, which can be user ids after an edit by hand: they are not for a log.
func (s Settings) Problems(guards limits.Guards) (problems []error) {
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		_, wrong, _ := s.Activities[name].of(name, guards, nil)
		problems = append(problems, wrong...)
	}
	return problems
}

// Activity returns an activity of the code with the settings applied, and its
// mode. An empty mode means that the mode of the function applies.
func (l *Limits) Activity(a limits.Activity) (now limits.Activity, mode string) {
	if changed, ok := l.changed(a.Name); ok {
		return changed.Activity, changed.mode
	}
	return a, ""
}

// changed returns an activity that the settings change, and reports whether
// they do.
func (l *Limits) changed(name string) (a activity, ok bool) {
	if l != nil {
		a, ok = l.activities[name]
	}
	return a, ok
}

// Granted returns what operators have granted to a user and what has not ended
// at now. The roles are in addition to the caller's roles. The tier replaces
// the caller's tier; empty means that no tier is granted.
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
