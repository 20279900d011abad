package limits

import (
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
)

// A Subject is a [guards.Subject] whose limits are read.
type Subject struct {
	Name     string
	Limit    policy.Policy
	Tiers    Tiers
	Optional bool
}

// For returns the limit for callers of a tier, as [Activity.For] does.
func (s Subject) For(tier string) policy.Policy {
	if p, ok := s.Tiers[tier]; ok {
		return p
	}
	return s.Limit
}

// user returns the part of a that is the user, who has no name here.
func (a Activity) user() Subject { return Subject{Limit: a.Limit, Tiers: a.Tiers} }

// Parts returns what counts an action of a: the user and the subjects in their order.
func (a Activity) Parts() []Subject { return append([]Subject{a.user()}, a.Subjects...) }

// Has reports whether a has a part with this name; empty: the user.
func (a Activity) Has(subject string) bool {
	return slices.ContainsFunc(a.Parts(), func(s Subject) bool { return s.Name == subject })
}

// Part returns the part with this name; empty: the user. It is zero if a has none.
func (a Activity) Part(subject string) Subject {
	if subject == "" {
		return a.user()
	}
	part, _ := first(a.Subjects, func(s Subject) bool { return s.Name == subject })
	return part
}

// WithMax returns the names of those limits of a part for which a caller can give a number, as an
// answer has them.
func (a Activity) WithMax(part string) (names []string) {
	for _, r := range a.Part(part).Limit.Rates() {
		if r.Max > 0 {
			names = append(names, policy.FullName(a.Name, part, r.Name))
		}
	}
	return names
}

// With returns a with s instead of its part of that name.
func (a Activity) With(s Subject) Activity {
	if s.Name == "" {
		a.Limit, a.Tiers = s.Limit, s.Tiers
		return a
	}
	a.Subjects = slices.Clone(a.Subjects)
	for i := range a.Subjects {
		if a.Subjects[i].Name == s.Name {
			a.Subjects[i] = s
		}
	}
	return a
}

// beside returns s with other limits beside its own.
func (s Subject) beside(others []policy.Policy) Subject {
	s.Limit, s.Tiers = s.Limit.Beside(others...), maps.Clone(s.Tiers)
	for tier, p := range s.Tiers {
		s.Tiers[tier] = p.Beside(others...)
	}
	return s
}

// SubjectID returns the key under which the table has the items of a subject. No user's
// id contains a space.
func SubjectID(name, id string) string { return " " + name + " " + id }

// SubjectOf returns the name and the id of the subject whose items have this key. It
// returns false for the id of a user, which contains no space, and for the key of the live
// limits, which contains one only.
func SubjectOf(key string) (name, id string, ok bool) {
	rest, spaced := strings.CutPrefix(key, " ")
	name, id, ok = strings.Cut(rest, " ")
	return name, id, ok && spaced
}

// SubjectName returns the name of the subject with this key; empty: it is a user's key.
func SubjectName(key string) string {
	name, _, ok := SubjectOf(key)
	if !ok {
		return ""
	}
	return name
}
