package simulate_test

import (
	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// code draws the limits that the code has: a page of limits, or one text of the subject,
// and sometimes another limit for a tier.
func (s *sim) code(subject subject) []limits.Activity {
	if subject.draw != nil {
		return subject.draw(s)
	}
	a := limits.Activity{Name: "act", Limit: policy.Must(subject.texts[s.random.IntN(len(subject.texts))])}
	if others := variations(a.Limit); s.chance(2) && len(others) > 0 {
		a.Tiers = limits.Tiers{premium: others[s.random.IntN(len(others))]}
	}
	return []limits.Activity{a}
}

// link puts the limits of a group beside one another, as a guard does.
func link(activities []limits.Activity) ([]limits.Activity, error) {
	g := guards.Guard{Name: "g", Message: "m"}
	for _, a := range activities {
		g.Activities = append(g.Activities, onPage(a))
	}
	linked, err := limits.Link([]guards.Guard{g})
	if err != nil {
		return nil, err
	}
	return linked[0].Activities, nil
}

// onPage returns an activity as a page has it.
func onPage(a limits.Activity) guards.Activity {
	page := guards.Activity{Name: a.Name, Label: a.Label, Group: a.Group, Hold: a.Hold, Unlimited: a.Unlimited}
	page.Limit, page.Tiers = guards.Limit(a.Limit.String()), tiersOnPage(a.Tiers)
	for _, s := range a.Subjects {
		page.Subjects = append(page.Subjects, guards.Subject{Name: s.Name, Limit: guards.Limit(s.Limit.String()), Tiers: tiersOnPage(s.Tiers), Optional: s.Optional})
	}
	return page
}

func tiersOnPage(tiers limits.Tiers) guards.Tiers {
	page := guards.Tiers{}
	for name, p := range tiers {
		page[name] = guards.Limit(p.String())
	}
	return page
}
