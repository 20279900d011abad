package command

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// fillExamples puts names of the project's own limits into the help of each command,
// instead of words such as {activity}. An example about something that the project
// does not have, such as a {tier}, is left out.
func fillExamples(node *kong.Node, names map[string]string) {
	var lines []string
	for line := range strings.Lines(node.Detail) {
		line = placeholder.ReplaceAllStringFunc(line, func(word string) string { return cmp.Or(names[word], word) })
		if !placeholder.MatchString(line) {
			lines = append(lines, line)
		}
	}
	node.Detail = strings.TrimSuffix(strings.Join(lines, ""), "\n")
	for _, child := range node.Children {
		fillExamples(child, names)
	}
}

// placeholder matches a word such as {activity} in a help text.
var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// examples returns what stands for each word in a help text. The {activity} is the first one
// that is counted, with its {guard} and twice its {limit}. The words {tiered} and {slotted}
// are the first ones that have tiers and a log. The {group} is the first one, with twice a
// {namedlimit}. The words of subjectExamples are among them. An activity without subjects
// comes before others.
func examples(guards limits.Guards) map[string]string {
	names := subjectExamples(guards)
	alone := false // {activity} has no subjects
	for g, a := range guards.All {
		if a.Limit.IsZero() {
			continue
		}
		if names["{activity}"] == "" || !alone && len(a.Subjects) == 0 {
			names["{activity}"], names["{guard}"], names["{limit}"] = a.Name, g.Name, twice(a.Limit)
			alone = len(a.Subjects) == 0
		}
		if tiers := slices.Sorted(maps.Keys(a.Tiers)); names["{tier}"] == "" && len(tiers) > 0 {
			names["{tiered}"], names["{tier}"], names["{tierlimit}"] = a.Name, tiers[0], twice(a.Tiers[tiers[0]])
		}
		if names["{slotted}"] == "" && a.Limit.HasLog() {
			names["{slotted}"] = a.Name
		}
	}
	names["{group}"], names["{named}"], names["{namedlimit}"] = groupExample(guards)
	return names
}

// subjectExamples returns what stands for the words about subjects. The word {counted} is
// the first activity that counts for {subjects} too, with the first {subject} and twice its
// {subjectlimit}. The {tieredsubject} is the first subject with tiers, and {subjecttier}
// one of them. The {slotsubject} is the first one with a log, of the activity
// {subjectslotted}.
func subjectExamples(guards limits.Guards) map[string]string {
	names := make(map[string]string)
	for _, a := range guards.All {
		for _, s := range a.Subjects {
			if names["{counted}"] == "" {
				names["{counted}"], names["{subjects}"] = a.Name, strings.TrimSpace(scaffold.Options(a))
				names["{subject}"], names["{subjectlimit}"] = s.Name, twice(s.Limit)
			}
			if tiers := slices.Sorted(maps.Keys(s.Tiers)); names["{subjecttier}"] == "" && len(tiers) > 0 {
				names["{tieredsubject}"], names["{subjecttier}"] = s.Name, tiers[0]
			}
			if names["{slotsubject}"] == "" && s.Limit.HasLog() {
				names["{slotsubject}"], names["{subjectslotted}"] = s.Name, a.Name
			}
		}
	}
	return names
}

// groupExample returns the first group that has a limit without a cost, the name of that
// limit, and twice the limit.
func groupExample(guards limits.Guards) (group, name, limit string) {
	for _, a := range guards.Grouped() {
		for i, r := range a.Limit.Rates() {
			if r.Cost == 0 {
				return a.Group, r.Name, twice(a.Limit.Each()[i])
			}
		}
	}
	return "", "", ""
}

// twice returns the text of a limit with twice the number, as a shell wants it.
func twice(p policy.Policy) string {
	text := p.String()
	if rates := p.Rates(); len(rates) == 1 {
		if more, err := replay.WithLimit(p, 2*rates[0].Actions()); err == nil {
			text = more.String()
		}
	}
	if strings.Contains(text, " ") {
		return strconv.Quote(text)
	}
	return text
}
