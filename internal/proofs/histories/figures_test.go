package histories_test

import (
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// shows reports whether d has the figures of s, and a wait for n more actions.
func (t tier) shows(s *state, c *call, d *ratelimit.Decision, n int64) bool {
	return t.each(s, c, d, n) && d.Wait == t.longest(s, c, n)
}

// each reports whether d has the figures of s for each limit, apart from the
// wait of the whole answer.
func (t tier) each(s *state, c *call, d *ratelimit.Decision, n int64) bool {
	want := t.readings(s, c, n)
	if len(want) == 1 {
		return same(d.Reading, want[0])
	}
	return slices.EqualFunc(d.Each, want, func(got, want policy.Reading) bool { return same(got, want) && got.Wait == want.Wait }) &&
		slices.ContainsFunc(want, func(r policy.Reading) bool {
			return same(d.Reading, r) && !slices.ContainsFunc(want, func(other policy.Reading) bool { return binds(other, r) })
		})
}

// crosses reports whether d has the right Crossed for a check that changed s to after.
// Each limit has its own. The whole has the Crossed of the limit whose figures d has.
func (t tier) crosses(s, after *state, c *call, d *ratelimit.Decision) bool {
	each := d.Each
	if len(t.limits) == 1 {
		each = []policy.Reading{d.Reading}
	}
	for i, r := range t.numbers.Rates {
		want := int64(0)
		if r.Kind == "fixed" { // in units: what another activity counted before leaves parts of an action
			full := r.Limit - t.cheapest[r.Name] // a unit more is too many for another action
			before, now := s.account.Models[i].Used(c.now, r, true), after.account.Models[i].Used(c.now, r, true)
			switch {
			case before <= full && now > full:
				want = 100
			case 5*before < 4*r.Limit && 5*now >= 4*r.Limit:
				want = 80
			}
		}
		if r.Kind == "lockout" && s.account.Models[i].Used(c.now, r, true) < r.Limit && after.account.Models[i].Used(c.now, r, true) >= r.Limit {
			want = 100
		}
		if each[i].Crossed != want || each[i].Name == d.Name && d.Crossed != want {
			return false
		}
	}
	return true
}

// binds reports whether other restricts the caller more than r: by a longer
// wait, then by fewer remaining actions, then by a later reset.
func binds(other, r policy.Reading) bool {
	if other.Wait != r.Wait {
		return other.Wait > r.Wait
	}
	if other.Remaining != r.Remaining {
		return other.Remaining < r.Remaining
	}
	return other.ResetAt > r.ResetAt
}

// readings returns what an answer tells about each limit, with the wait for n more
// actions.
func (t tier) readings(s *state, c *call, n int64) []policy.Reading {
	list := make([]policy.Reading, len(t.limits))
	for i, f := range s.account.Figures(t.numbers, c.now) {
		list[i] = policy.Reading{Name: f.Name, Limit: f.Limit, Used: f.Used, Remaining: f.Left, ResetAt: f.Resets, WindowKey: f.Window, Locked: f.Locked}
		if n > 0 {
			list[i].Wait = millis(s.account.Wait(t.limits[i], c.now, n, false))
		}
	}
	return list
}

// longest returns the longest wait of all limits for n more actions.
func (t tier) longest(s *state, c *call, n int64) (longest time.Duration) {
	for _, r := range t.readings(s, c, n) {
		longest = max(longest, r.Wait)
	}
	return longest
}

func same(got, want policy.Reading) bool {
	return got.Name == want.Name && got.Limit == want.Limit && got.Used == want.Used && got.Remaining == want.Remaining &&
		got.ResetAt == want.ResetAt && got.WindowKey == want.WindowKey && got.Locked == want.Locked
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
