package guard

import (
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A lower live limit that shadow mode only tries refuses nobody. So a count above it is valid
// as long as the limit of the code, or the live limit before, has room for it. Such a request
// is decided as a status of the largest count that fits, and is then a refusal.
//
// For example, the code has 100/1m and shadow mode tries 10/1m. A check of 20 has the figures
// of a status of 10, and shadow mode lets it through.

// widest returns the limit of s that a count has to fit in.
func widest(t live.Terms, s live.Subject) policy.Policy {
	widest := s.Limit
	for _, other := range []policy.Policy{s.Code, s.Before} {
		if t.Mode == live.Shadow && other.Max() > widest.Max() {
			widest = other
		}
	}
	return widest
}

// largest returns the largest count that fits in each limit that is in force.
func largest(t live.Terms) int64 {
	n := t.Limit.Max()
	for _, s := range t.Subjects {
		n = min(n, s.Limit.Max())
	}
	return n
}

// refuse makes d, the status of the largest count, the refusal of a larger one. The wait of
// the lowest limit has no end, so it is the longest.
func refuse(d *ratelimit.Decision) {
	d.Allowed, d.Granted = false, 0
	if d.Reason == ratelimit.OK {
		d.Reason = ratelimit.Limited
	}
	lowest := -1
	for i, l := range d.Each {
		if lowest < 0 || l.Limit < d.Each[lowest].Limit {
			lowest = i
		}
	}
	if lowest >= 0 {
		d.ByLimit(lowest)
	}
}
