package limits

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
)

// A Subject is someone or something in whose item an activity counts, too, such as the
// room of a message. Its limit can be of any kind but a reservoir.
type Subject struct {
	Name     string        // 1 to 8 letters, each a to z, such as room
	Limit    policy.Policy // as that of an activity
	Tiers    Tiers
	Optional bool // an event may leave it out, and is not limited by it then
}

const (
	mostSubjects   = 3
	longestSubject = 8

	// tierLetters are those of a tier's name, which stands in Go, in JSON and in a table of Markdown.
	tierLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
)

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
	part, _ := first(a.Parts(), func(s Subject) bool { return s.Name == subject })
	return part
}

// With returns a with s in place of its part of that name.
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

// limits returns the ordinary limit and those of the tiers.
func (s Subject) limits() []policy.Policy {
	return append(slices.Collect(maps.Values(s.Tiers)), s.Limit)
}

// beside returns s with other limits beside its own.
func (s Subject) beside(others []policy.Policy) Subject {
	s.Limit, s.Tiers = s.Limit.Beside(others...), maps.Clone(s.Tiers)
	for tier, p := range s.Tiers {
		s.Tiers[tier] = p.Beside(others...)
	}
	return s
}

// validateSubject returns an error for the first mistake in the name of a subject, and
// for a reservoir beside it.
func (a Activity) validateSubject(i int) error {
	s := a.Subjects[i]
	_, taken := first(a.Subjects[:i], func(other Subject) bool { return other.Name == s.Name })
	switch {
	case len(s.Name) < 1 || len(s.Name) > longestSubject || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz") != "":
		return fmt.Errorf("name of a subject is %q, want 1 to %d letters a to z, such as room", s.Name, longestSubject)
	case taken || s.Name == a.Name || a.Limit.Part(s.Name) != "":
		return fmt.Errorf("subject %q: the activity, a limit or another subject has that name", s.Name)
	case s.Limit.IsZero():
		return fmt.Errorf("subject %q has no limit", s.Name)
	case s.Limit.Queues() || a.Limit.Queues():
		return fmt.Errorf("subject %q: a reservoir gives places to users alone; want another kind of limit beside a subject", s.Name)
	}
	return nil
}

// validate returns an error for the first mistake in the limits of s, a part of a.
func (s Subject) validate(a Activity) error {
	switch {
	case a.Group == "" && s.Limit.Named() && len(s.Limit.Rates()) == 1:
		return fmt.Errorf("limit %q has a name, want one only if there are several limits or a group", s.Limit)
	case a.Group != "" && !s.Limit.Named():
		return fmt.Errorf("limit %q has no name, want one in the group %q, as in \"writes: %[1]s\"", s.Limit, a.Group)
	}
	for _, tier := range slices.Sorted(maps.Keys(s.Tiers)) {
		p := s.Tiers[tier]
		if len(tier) < 1 || len(tier) > 36 || strings.Trim(tier, tierLetters) != "" {
			return fmt.Errorf("tier is %q, want 1 to 36 of A to Z, a to z, 0 to 9, _ and -", tier)
		}
		if p.IsZero() {
			return fmt.Errorf("tier %q has no limit", tier)
		}
		if err := policy.Share(s.Limit, p); err != nil { // then any two tiers can share, too
			return fmt.Errorf("tier %q: %w", tier, err)
		}
	}
	for _, p := range s.limits() {
		if err := p.CheckHold(); err != nil && a.Hold {
			return err
		}
	}
	return nil
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

// SubjectName returns the name of the subject with this key; empty: it is that of a user.
func SubjectName(key string) string {
	name, _, ok := SubjectOf(key)
	if !ok {
		return ""
	}
	return name
}
