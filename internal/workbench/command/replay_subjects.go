package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/replay"
)

// subjects returns the subjects of --subject with their limits: the flag's limits, or
// else the code's. They go with these limits of users.
func (c *replayCommand) subjects(env session, users []policy.Policy) (all []replay.Subject, err error) {
	switch {
	case len(c.Subject) == 0:
	case c.Suggest != "" || c.Plot != "":
		return nil, errors.New("--subject goes without --suggest and --plot")
	case slices.ContainsFunc(users, policy.Policy.Queues):
		return nil, errors.New("--subject goes without a reservoir, which gives places to users alone")
	}
	_, a, _ := env.guards.Activity(c.Activity)
	for _, text := range c.Subject {
		name, limit, given := strings.Cut(text, "=")
		s := replay.Subject{Name: name}
		switch {
		case given:
			if s.Policy, err = policy.Parse(limit); err != nil {
				return nil, fmt.Errorf("--subject %s: %w", name, err)
			}
		case !a.Has(name) || name == "":
			return nil, hint{hasSubject(a, name), "give a limit to try: --subject " + name + "=600/1m"}
		default:
			s.Policy = a.Part(name).Limit
		}
		all = append(all, s)
	}
	if len(all) == 0 && len(a.Subjects) > 0 {
		env.note(fmt.Sprintf("only users are limited here; --subject %s limits the %[1]s of each request, too", a.Subjects[0].Name))
	}
	return all, validSubjects(all)
}

// validSubjects returns an error for subjects that no activity can have.
func validSubjects(all []replay.Subject) error {
	one := guards.Activity{Name: "activity_of_replay", Limit: "1/1m"} // only its subjects are checked
	for _, s := range all {
		one.Subjects = append(one.Subjects, guards.Subject{Name: s.Name, Limit: guards.Limit(s.Policy.String())})
	}
	err := guards.Validate([]guards.Guard{{Name: "g", Message: "m", Activities: []guards.Activity{one}}})
	if err == nil {
		return nil
	}
	return errors.New(strings.ReplaceAll(err.Error(), fmt.Sprintf("g, activity %q", one.Name), "--subject"))
}

// writeLimitedBy writes how many requests the users' own limit refused, and each subject.
func writeLimitedBy(b *strings.Builder, r *replay.Report) {
	var each []string
	for _, name := range slices.Sorted(maps.Keys(r.LimitedBy)) {
		who := name
		if name == r.Activity {
			who = "the user's own limit"
		}
		each = append(each, fmt.Sprintf("%s %s", who, grouped(r.LimitedBy[name])))
	}
	if len(each) > 0 {
		fmt.Fprintf(b, "refused by: %s\n", strings.Join(each, ", "))
	}
}
