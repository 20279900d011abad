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
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.Name, strings.Join(alike, ", "), limit, Tiers(first.Tiers, "`"))
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
	return words
}

// same reports whether two activities have the same limits, group and Hold.
func same(a, b limits.Activity) bool {
	return a.Unlimited == b.Unlimited && a.Group == b.Group && a.Hold == b.Hold && a.Limit.Equal(b.Limit) && maps.EqualFunc(a.Tiers, b.Tiers, policy.Policy.Equal)
}

// Tiers returns the limits of the tiers in words, with quote around each limit.
func Tiers(tiers limits.Tiers, quote string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(tiers)) {
		all = append(all, name+": "+quote+tiers[name].String()+quote)
	}
	return strings.Join(all, "; ")
}
