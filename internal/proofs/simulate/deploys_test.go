package simulate_test

import (
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// deploy replaces all instances by others, whose code has other windows. No
// request is under way. A deploy undoes the live limits, and the models keep what
// docs/policies.md says that still counts.
func (s *sim) deploy() {
	if s.subjects() || s.prepaid() || len(s.activities) > 1 && s.activities[0].Group == "" {
		return // the models of their other items would have to change as well
	}
	was, windows := map[string]time.Duration{}, map[string]time.Duration{} // of each limit, by name
	deployed := slices.Clone(s.activities)
	for i, a := range deployed {
		rates := a.Limit.Rates()
		for j := range rates {
			r := &rates[j]
			if _, drawn := windows[r.Name]; !drawn {
				was[r.Name], windows[r.Name] = r.Window, s.window(*r)
			}
			r.Window = windows[r.Name]
		}
		p, err := parse(rates)
		if err != nil {
			return
		}
		deployed[i].Limit, deployed[i].Tiers = p, nil
	}
	deployed, err := link(deployed)
	if err != nil || slices.EqualFunc(deployed, s.activities, func(a, b limits.Activity) bool { return a.Limit.Equal(b.Limit) }) {
		return
	}
	s.line("a deploy changes %s to %s", limitsOf(s.activities), limitsOf(deployed))
	s.stats["deploys that change windows"]++
	s.activities, s.deployed = deployed, s.now
	clear(s.byText) // the same limit can now be beside others
	s.settings.versions = append(s.settings.versions, settled{since: s.now})
	for i := range s.instances {
		s.instances[i] = s.newInstance(i)
	}
	for _, u := range s.ledger.users {
		for i, m := range u.Models {
			if window := windows[u.Names[i]]; window != was[u.Names[i]] {
				u.Models[i] = m.Deployed(window.Milliseconds())
			}
		}
		u.freed, u.freer, u.changed, u.deployed = s.now, nil, s.now, true
	}
}

// window draws another window of a limit.
func (s *sim) window(r policy.Rate) time.Duration {
	window := []time.Duration{r.Window, r.Window / 2, 2 * r.Window, 3 * r.Window, 7 * r.Window}[s.random.IntN(5)]
	if r.Kind == "log" { // with a longer one, old slots count again, and which ones depends on the tier
		window = min(window, r.Window)
	}
	if r.Unit != "" || window < time.Second || window%(time.Duration(r.Limit)*time.Millisecond) != 0 {
		return r.Window
	}
	return window
}
