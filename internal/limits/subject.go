package limits

import (
	"errors"
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
)

// For returns the limit for callers of a tier, as [Activity.For] does.
func (s Subject) For(tier string) policy.Policy {
	if p, ok := s.Tiers[tier]; ok {
		return p
	}
	return s.Limit
}

// Parts returns what counts an action of a: the user, who has no name here, and the
// subjects in their order.
func (a Activity) Parts() []Subject {
	return append([]Subject{{Limit: a.Limit, Tiers: a.Tiers}}, a.Subjects...)
}

// Has reports whether a has a part with this name; empty: the user.
func (a Activity) Has(subject string) bool {
	return slices.ContainsFunc(a.Parts(), func(s Subject) bool { return s.Name == subject })
}

// Part returns the part with this name; empty: the user. A must have it.
func (a Activity) Part(subject string) Subject {
	parts := a.Parts()
	return parts[slices.IndexFunc(parts, func(s Subject) bool { return s.Name == subject })]
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

// validateSubjects returns an error for the first mistake in the names of the subjects,
// and for a reservoir beside them.
func (a Activity) validateSubjects() error {
	if len(a.Subjects) > mostSubjects {
		return fmt.Errorf("it has %d subjects, want at most %d", len(a.Subjects), mostSubjects)
	}
	seen := map[string]bool{a.Name: true}
	for _, s := range a.Subjects {
		switch {
		case len(s.Name) < 1 || len(s.Name) > longestSubject || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz") != "":
			return fmt.Errorf("name of a subject is %q, want 1 to %d letters a to z, such as room", s.Name, longestSubject)
		case seen[s.Name] || a.Limit.Part(s.Name) != "":
			return fmt.Errorf("subject %q: the activity, a limit or another subject has that name", s.Name)
		case s.Limit.IsZero():
			return fmt.Errorf("subject %q has no limit", s.Name)
		case s.Limit.Queues() || a.Limit.Queues():
			return fmt.Errorf("subject %q: a reservoir gives places to users alone; want another kind of limit beside a subject", s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

// validateNames returns an error if a limit has no name in a group, or a single limit
// has one outside of groups.
func (s Subject) validateNames(group string) error {
	switch {
	case group == "" && s.Limit.Named() && len(s.Limit.Rates()) == 1:
		return fmt.Errorf("limit %q has a name, want one only if there are several limits or a group", s.Limit)
	case group != "" && !s.Limit.Named():
		return fmt.Errorf("limit %q has no name, want one in the group %q, as in \"writes: %[1]s\"", s.Limit, group)
	}
	return nil
}

// notInTier reports whether the name of a tier must not contain c. The name stands
// in Go, in JSON and in a table of Markdown.
func notInTier(c rune) bool {
	return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", c)
}

// validateTiers checks that each tier can share a count with the ordinary
// limit. Then any two tiers can share a count too, because [policy.Share] only
// checks that properties are equal.
func (s Subject) validateTiers() error {
	for _, tier := range slices.Sorted(maps.Keys(s.Tiers)) {
		p := s.Tiers[tier]
		if len(tier) < 1 || len(tier) > 36 || strings.ContainsFunc(tier, notInTier) {
			return fmt.Errorf("tier is %q, want 1 to 36 of A to Z, a to z, 0 to 9, _ and -", tier)
		}
		if p.IsZero() {
			return fmt.Errorf("tier %q has no limit", tier)
		}
		if err := policy.Share(s.Limit, p); err != nil {
			return fmt.Errorf("tier %q: %w", tier, err)
		}
	}
	return nil
}

// checkHold returns an error if a limit is too fast for an activity that holds its
// receipts.
func (s Subject) checkHold() error {
	for _, p := range s.limits() {
		if err := p.CheckHold(); err != nil {
			return err
		}
	}
	return nil
}

// validateParts returns an error for the first mistake in the limits of the user and of
// the subjects.
func (a Activity) validateParts() error {
	for _, s := range a.Parts() {
		err := errors.Join(s.validateNames(a.Group), s.validateTiers())
		if err == nil && a.Hold {
			err = s.checkHold()
		}
		if err != nil && s.Name != "" {
			err = fmt.Errorf("subject %q: %w", s.Name, err)
		}
		if err != nil {
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
