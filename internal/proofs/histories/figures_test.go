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
	want := make([]policy.Reading, len(t.limits))
	for i := range t.limits {
		want[i] = t.reading(s, c, i, n)
	}
	if len(want) == 1 {
		return same(d.Reading, want[0])
	}
	return slices.EqualFunc(d.Each, want, func(got, want policy.Reading) bool { return same(got, want) && got.Wait == want.Wait }) &&
		slices.ContainsFunc(want, func(r policy.Reading) bool {
			return same(d.Reading, r) && !slices.ContainsFunc(want, func(other policy.Reading) bool { return binds(other, r) })
		})
}

// crosses reports whether d says of each limit what a check has crossed that changed
// s to after, and of the whole what it says of the limit whose figures it has.
func (t tier) crosses(s, after *state, c *call, d *ratelimit.Decision) bool {
	each := d.Each
	if len(t.limits) == 1 {
		each = []policy.Reading{d.Reading}
	}
	for i, p := range t.limits {
		want := int64(0)
		if p, ok := bare(p).(fixed); ok { // in units: what another activity counted before leaves parts of an action
			before, now := p.used(s.accounts[i], c.now), p.used(after.accounts[i], c.now)
			switch {
			case before < p.most() && now >= p.most():
				want = 100
			case 5*before < 4*p.most() && 5*now >= 4*p.most():
				want = 80
			}
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

func (t tier) reading(s *state, c *call, i int, n int64) policy.Reading {
	p, a := t.limits[i], s.accounts[i]
	r := policy.Reading{
		Name: t.names[i], Limit: p.most(), Used: p.used(a, c.now), Remaining: max(0, p.most()-p.used(a, c.now)), ResetAt: p.resetAt(a, c.now),
	}
	if len(t.limits) == 1 {
		r.WindowKey = p.windowKey(c.now)
	}
	if n > 0 {
		r.Wait = millis(wait(p, a, c.now, s.latest, n))
	}
	return r
}

// longest returns the longest wait of all limits for n more actions.
func (t tier) longest(s *state, c *call, n int64) (longest time.Duration) {
	for i := range t.limits {
		longest = max(longest, t.reading(s, c, i, n).Wait)
	}
	return longest
}

func same(got, want policy.Reading) bool {
	return got.Name == want.Name && got.Limit == want.Limit && got.Used == want.Used && got.Remaining == want.Remaining &&
		got.ResetAt == want.ResetAt && got.WindowKey == want.WindowKey
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
