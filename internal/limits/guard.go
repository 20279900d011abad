package limits

import (
	"errors"
	"fmt"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A Guard is one function and the activities it decides.
type Guard struct {
	Name       string // of its folder in functions/
	Message    string // what a refused person is told
	Activities []Activity
}

// An Activity is what a user does, and how often they may.
type Activity struct {
	Name  string           // 1 to 36 characters, each a to z or _
	Limit ratelimit.Policy // for everyone whose tier is not in Tiers
	Tiers Tiers            // by the caller's plan
	Label string           // the limit in words for people, such as 12-hour pins; empty: none

	Unlimited bool // never counted: then there is no Limit, and no Tiers
}

// Tiers are the limits of callers' plans. All of an activity's share one count.
type Tiers map[string]ratelimit.Policy

// Activity finds one of the guard's activities.
func (g Guard) Activity(name string) (Activity, bool) {
	for _, a := range g.Activities {
		if a.Name == name {
			return a, true
		}
	}
	return Activity{}, false
}

// For is the limit for callers of a tier: the tier's own, else the ordinary one.
// It is nil where the activity is unlimited.
func (a Activity) For(tier string) ratelimit.Policy {
	if p, ok := a.Tiers[tier]; ok {
		return p
	}
	return a.Limit
}

// Validate says what is wrong with the guard: nil where nothing is.
func (g Guard) Validate() error {
	if g.Name == "" || g.Message == "" || len(g.Activities) == 0 {
		return fmt.Errorf("guard %q needs a name, a message and activities", g.Name)
	}
	seen := make(map[string]bool, len(g.Activities))
	for _, a := range g.Activities {
		if err := a.validate(); err != nil {
			return fmt.Errorf("%s, activity %q: %w", g.Name, a.Name, err)
		}
		if seen[a.Name] {
			return fmt.Errorf("%s, activity %q: listed twice", g.Name, a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

func (a Activity) validate() error {
	if len(a.Name) < 1 || len(a.Name) > 36 {
		return errors.New("its name is not of 1 to 36 characters")
	}
	for _, c := range a.Name {
		if c != '_' && (c < 'a' || c > 'z') {
			return fmt.Errorf("its name has %q, want a to z and _", c)
		}
	}
	switch {
	case a.Unlimited && (a.Limit != nil || len(a.Tiers) > 0):
		return errors.New("it is unlimited and has a limit")
	case a.Unlimited:
		return nil
	case a.Limit == nil:
		return errors.New("it has no limit, and is not said to be unlimited")
	}
	if err := a.Limit.Validate(); err != nil {
		return err
	}
	for tier, p := range a.Tiers {
		if p == nil {
			return fmt.Errorf("tier %q has no limit", tier)
		}
		if err := p.Validate(); err != nil {
			return fmt.Errorf("tier %q: %w", tier, err)
		}
		if err := ratelimit.Share(a.Limit, p); err != nil {
			return fmt.Errorf("tier %q %w", tier, err)
		}
	}
	return nil
}
