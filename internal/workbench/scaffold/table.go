package scaffold

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// Header is the head of the table that [Markdown] writes.
const Header = "| function | activity | limit | tiers |\n|---|---|---|---|\n"

// Markdown returns the limits as a table. Neighbouring activities of one guard
// that have the same limits share a row.
func Markdown(guards limits.Guards) string {
	var b strings.Builder
	b.WriteString(Header)
	for _, g := range guards {
		for rest := g.Activities; len(rest) > 0; {
			first, alike := rest[0], []string{}
			for len(rest) > 0 && same(first, rest[0]) {
				alike = append(alike, "`"+rest[0].Name+"`")
				rest = rest[1:]
			}
			limit := "unlimited"
			if !first.Unlimited {
				limit = "`" + first.Limit.String() + "`" + together(first)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.Name, strings.Join(alike, ", "), limit, Tiers(first, "`"))
		}
	}
	return b.String()
}

// together returns the group of an activity and that it holds, in words.
func together(a limits.Activity) (words string) {
	if a.Group != "" {
		words = ", group `" + a.Group + "`"
	}
	if a.Hold {
		words += ", hold"
	}
	if len(a.Subjects) > 0 {
		words += ", " + Subjects(a, "`")
	}
	return words
}

// Subjects returns the limits of an activity's subjects in words, with quote around each
// limit, such as: room 600/1m, optional tenant 1000/day.
func Subjects(a limits.Activity, quote string) string {
	var all []string
	for _, s := range a.Subjects {
		text := s.Name + " " + quote + s.Limit.String() + quote
		if s.Optional {
			text = "optional " + text
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// limitsOf returns all limits of an activity in words, as in: 5/1m; premium: 20/1m; for room
// 600/1m.
func limitsOf(a limits.Activity) string {
	text := a.Limit.String()
	if len(a.Tiers) > 0 {
		text += "; " + Tiers(a, "")
	}
	if len(a.Subjects) > 0 {
		text += "; for " + Subjects(a, "")
	}
	return text
}

// same reports whether two activities have the same limits, subjects, group and Hold.
func same(a, b limits.Activity) bool {
	return a.Unlimited == b.Unlimited && a.Group == b.Group && a.Hold == b.Hold && slices.EqualFunc(a.Parts(), b.Parts(), func(a, b limits.Subject) bool {
		return a.Name == b.Name && a.Optional == b.Optional && a.Limit.Equal(b.Limit) && maps.EqualFunc(a.Tiers, b.Tiers, policy.Policy.Equal)
	})
}

// Tiers returns the limits of an activity's tiers in words, with quote around each limit.
// A subject's limits follow with its name, as in: premium: 20/1m; room, premium: 900/1m.
func Tiers(a limits.Activity, quote string) string {
	var all []string
	for _, s := range a.Parts() {
		of := ""
		if s.Name != "" {
			of = s.Name + ", "
		}
		for _, tier := range slices.Sorted(maps.Keys(s.Tiers)) {
			all = append(all, of+tier+": "+quote+s.Tiers[tier].String()+quote)
		}
	}
	return strings.Join(all, "; ")
}
