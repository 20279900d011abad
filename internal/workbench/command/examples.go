package command

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// fillExamples puts names of the project's own limits into the help of each command,
// in place of words such as {activity}. An example about something that the project
// does not have, such as a {tier}, is left out.
func fillExamples(node *kong.Node, names map[string]string) {
	var lines []string
	for line := range strings.Lines(node.Detail) {
		for word, name := range names {
			if strings.Contains(line, word) && name == "" {
				line = ""
			}
			line = strings.ReplaceAll(line, word, name)
		}
		lines = append(lines, line)
	}
	node.Detail = strings.TrimSuffix(strings.Join(lines, ""), "\n")
	for _, child := range node.Children {
		fillExamples(child, names)
	}
}

// examples returns what stands for each word in a help text: the first activity that
// is counted, its {guard}, and twice its {limit}; the first {tiered} activity; the first one that
// has {slotted} actions, those of a log; the first {group} with twice a {namedlimit}; and
// the first activity that is {counted} for {subjects} too, with the first {subject} and
// twice its {subjectlimit}. An activity without subjects comes before others.
func examples(guards limits.Guards) map[string]string {
	names := map[string]string{
		"{activity}": "", "{guard}": "", "{limit}": "", "{tiered}": "", "{tier}": "", "{tierlimit}": "", "{slotted}": "",
		"{slotsubject}": "", "{subjectslotted}": "", "{counted}": "", "{subjects}": "", "{subject}": "", "{subjectlimit}": "", "{tieredsubject}": "", "{subjecttier}": "",
	}
	alone := false // {activity} has no subjects
	for _, g := range guards {
		for _, a := range g.Activities {
			if a.Unlimited || a.Limit.IsZero() {
				continue
			}
			if names["{activity}"] == "" || !alone && len(a.Subjects) == 0 {
				names["{activity}"], names["{guard}"], names["{limit}"] = a.Name, g.Name, twice(a.Limit)
				alone = len(a.Subjects) == 0
			}
			if names["{counted}"] == "" && len(a.Subjects) > 0 {
				names["{counted}"], names["{subjects}"] = a.Name, subjectExample(a)
				names["{subject}"], names["{subjectlimit}"] = a.Subjects[0].Name, twice(a.Subjects[0].Limit)
			}
			if tiers := slices.Sorted(maps.Keys(a.Tiers)); names["{tier}"] == "" && len(tiers) > 0 {
				names["{tiered}"], names["{tier}"], names["{tierlimit}"] = a.Name, tiers[0], twice(a.Tiers[tiers[0]])
			}
		}
	}
	for _, name := range guards.Activities() {
		_, a, _ := guards.Activity(name)
		if names["{slotted}"] == "" && a.Limit.HeldUntil(0) != 0 {
			names["{slotted}"] = name
		}
		for _, s := range a.Subjects {
			if tiers := slices.Sorted(maps.Keys(s.Tiers)); names["{subjecttier}"] == "" && len(tiers) > 0 {
				names["{tieredsubject}"], names["{subjecttier}"] = s.Name, tiers[0]
			}
			if names["{slotsubject}"] == "" && s.Limit.HeldUntil(0) != 0 {
				names["{slotsubject}"], names["{subjectslotted}"] = s.Name, name
			}
		}
	}
	names["{group}"], names["{named}"], names["{namedlimit}"] = groupExample(guards)
	return names
}

// subjectExample returns the options of a check that name the subjects of an activity.
func subjectExample(a limits.Activity) string {
	var options []string
	for _, s := range a.Subjects {
		options = append(options, "--subject "+s.Name+"="+s.Name+"1")
	}
	return strings.Join(options, " ")
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
		if more, err := p.WithLimit(2 * rates[0].Actions()); err == nil {
			text = more.String()
		}
	}
	if strings.Contains(text, " ") {
		return strconv.Quote(text)
	}
	return text
}
