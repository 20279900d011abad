package ratelimit

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Several are limits that all have to allow an action, such as 10 a minute and
// 200 a day: all of them count it, or none does, in one item.
//
// Its state is that of each limit, each name after a letter for the limit. A
// fixed window, which has an item of each window's own elsewhere, is w there: a
// million for each window since 1970, and one for each action in the last.
type Several []Named

// Named is one of several limits.
type Named struct {
	Name   string // what callers are told of it, such as minute
	Policy Policy // a FixedWindow, TokenBucket or SlidingLog
}

// mostLimits is how many limits may be on one activity: more than anyone's
// guard needs, and they fit one expression.
const mostLimits = 8

// Validate implements [Policy].
func (p Several) Validate() error {
	if len(p) < 2 || len(p) > mostLimits {
		return fmt.Errorf("%d limits on one activity, want 2 to %d", len(p), mostLimits)
	}
	seen := make(map[string]bool, len(p))
	for _, m := range p {
		if m.Name == "" || seen[m.Name] {
			return fmt.Errorf("limit %q is unnamed, or named as another", m.Name)
		}
		seen[m.Name] = true
		if err := m.validate(); err != nil {
			return fmt.Errorf("limit %q: %w", m.Name, err)
		}
	}
	return p.fitsOneGuard()
}

// fitsOneGuard says whether all guards together stay short, whatever is asked.
func (p Several) fitsOneGuard() error {
	most, _ := p.Quota() // at once
	slots := int64(0)
	for _, m := range p {
		if _, ok := m.Policy.(SlidingLog); ok {
			slots += min(most, looseSlots)
		}
	}
	if slots > looseSlots {
		return fmt.Errorf("the logs among the limits take up to %d slots at once, want at most %d", slots, looseSlots)
	}
	return nil
}

func (m Named) validate() error {
	switch l := m.Policy.(type) {
	case FixedWindow:
		if l.Limit >= million {
			return fmt.Errorf("limit is %d, want below %d beside others", l.Limit, million)
		}
	case TokenBucket, SlidingLog:
	default: // a guard of many branches does not go with others
		return fmt.Errorf("it is a %T, want a FixedWindow, TokenBucket or SlidingLog", l)
	}
	return m.Policy.Validate()
}

// limit is the limit as it is kept beside others.
func (m Named) limit() Policy {
	if p, ok := m.Policy.(FixedWindow); ok {
		return sharedWindow{p}
	}
	return m.Policy
}

// String is the limits in words: 10 a minute, fixed window; and 200 a day,
// fixed window.
func (p Several) String() string {
	words := make([]string, len(p))
	for i, m := range p {
		words[i] = m.Policy.String()
	}
	return strings.Join(words, "; and ")
}

// Quota implements [Policy]: that of the limit which takes the fewest at once.
func (p Several) Quota() (limit int64, window time.Duration) {
	for i, m := range p {
		if l, w := m.Policy.Quota(); i == 0 || l < limit {
			limit, window = l, w
		}
	}
	return limit, window
}

// Place implements [Policy].
func (p Several) Place(now int64) Place {
	var place Place
	for _, m := range p {
		place.Expires = max(place.Expires, m.limit().Place(now).Expires)
	}
	return place
}

// Plan implements [Policy].
func (p Several) Plan(now, n int64) Plan {
	return p.plan(func(m Policy) Plan { return m.Plan(now, n) })
}

// Release implements [Policy].
func (p Several) Release(now, at, n int64) (Plan, bool) {
	return p.plan(func(m Policy) Plan {
		plan, _ := m.Release(now, at, n)
		return plan
	}), true
}

// plan is what all limits' plans allow.
func (p Several) plan(of func(Policy) Plan) Plan {
	plans := make([]Plan, len(p))
	for i, m := range p {
		plans[i] = of(m.limit())
	}
	return func(s State) (Update, bool) {
		var all Update
		var terms []Term
		for i, plan := range plans {
			u, ok := plan(p.state(i, s))
			if !ok {
				return Update{}, false
			}
			for _, t := range slices.Concat(u.If...) { // one conjunction, of those that Validate takes
				t.Attr = letter(i) + t.Attr
				terms = append(terms, t)
			}
			for _, a := range u.Acts {
				a.Attr = letter(i) + a.Attr
				all.Acts = append(all.Acts, a)
			}
		}
		if len(terms) > 0 {
			all.If = [][]Term{terms}
		}
		return all, true
	}
}

// Figures implements [Policy]: those of the limit with the least left, and of
// these the one that lasts longest.
func (p Several) Figures(now int64, s State) Figures {
	each, tightest := p.each(now, 0, s)
	return each[tightest].Figures
}

// Wait implements [Policy].
func (p Several) Wait(now, n int64, s State) time.Duration {
	var wait time.Duration
	for i, m := range p {
		wait = max(wait, m.limit().Wait(now, n, p.state(i, s)))
	}
	return wait
}

// Each is one of several limits in a decision.
type Each struct {
	Name string
	Figures
	Limit  int64
	Window time.Duration
	Wait   time.Duration // until the request can pass this one; 0 where nothing was refused
}

// each reads all limits, for a request that waits for n actions; 0: for none. It
// says which of them binds: that for which the request waits longest, else the
// tightest.
func (p Several) each(now, n int64, s State) (list []Each, binding int) {
	list = make([]Each, len(p))
	for i, m := range p {
		mine := p.state(i, s)
		list[i] = Each{Name: m.Name, Figures: m.limit().Figures(now, mine)}
		list[i].Limit, list[i].Window = m.Policy.Quota()
		if n > 0 {
			list[i].Wait = m.limit().Wait(now, n, mine)
		}
		first := list[binding]
		if list[i].Wait > first.Wait || first.Wait == 0 && list[i].tighter(first.Figures) {
			binding = i
		}
	}
	return list, binding
}

// tighter says whether less is left, or as much for longer.
func (f Figures) tighter(than Figures) bool {
	return f.Remaining < than.Remaining || f.Remaining == than.Remaining && f.ResetAt > than.ResetAt
}

// state is the state of one of the limits.
func (p Several) state(i int, s State) State {
	mine := make(State)
	for name, v := range s {
		if attr, ok := strings.CutPrefix(name, letter(i)); ok {
			mine[attr] = v
		}
	}
	return mine
}

// letter begins the names of one limit's attributes.
func letter(i int) string { return string(rune('a' + i)) }
