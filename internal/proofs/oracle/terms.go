package oracle

import (
	"math"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// Terms are the limits of one policy. The Burst of each rate is what one can have at once:
// of any kind but a bucket, its Limit. The Ahead of a prepaid bucket is how long a lease lasts.
type Terms struct {
	Rates []policy.Rate // at least one
	Most  int64         // the most actions that one request can take

	Highest int64 // the lowest limit in actions, each with the highest number that a caller can give
}

// NewTerms returns the terms of a policy's rates: one rate or more. A prepaid bucket keeps
// back what refills in a second, or in a quarter of the time that it takes to fill.
func NewTerms(rates []policy.Rate) *Terms {
	t := &Terms{Rates: slices.Clone(rates), Most: 1_000_000, Highest: 1_000_000}
	for i := range t.Rates {
		r := &t.Rates[i]
		switch {
		case r.Burst == 0:
			r.Burst = r.Limit
		case r.Prepaid:
			every := Interval(*r)
			lasts := min(1000, r.Burst*every/4)
			r.Ahead = time.Duration(lasts) * time.Millisecond
			r.Burst -= (lasts + every - 1) / every
		}
		t.Most, t.Highest = min(t.Most, r.Burst/Cost(*r)), min(t.Highest, Highest(*r))
		if r.Kind == "reservoir" {
			t.Most = 1
		}
	}
	return t
}

// Rate returns the limit with this name.
func (t *Terms) Rate(name string) (policy.Rate, bool) {
	i := slices.IndexFunc(t.Rates, func(r policy.Rate) bool { return r.Name == name })
	if i < 0 {
		return policy.Rate{}, false
	}
	return t.Rates[i], true
}

// Longest returns the longest time until a full limit is empty again, in milliseconds. A bucket
// can be filled by a higher number than that of the limit.
func (t *Terms) Longest() (window int64) {
	for _, r := range t.Rates {
		window = max(window, r.Window.Milliseconds(), Interval(r)*r.Burst*rise(r), r.MaxLock.Milliseconds())
	}
	return window
}

// Cost returns how many units one action takes. The models count in units.
func Cost(r policy.Rate) int64 { return max(1, r.Cost) }

// Interval returns in how many milliseconds a bucket gets one unit back. Only a number of a
// caller makes a fraction, which is rounded up.
func Interval(r policy.Rate) int64 { return (r.Window.Milliseconds() + r.Limit - 1) / r.Limit }

// LeaseEnds returns until when actions that t's limits lend at a time may be handed out.
func (t *Terms) LeaseEnds(at int64) int64 {
	ends := int64(math.MaxInt64)
	for _, r := range t.Rates {
		if r.Kind == "bucket" {
			ends = min(ends, at+lease(r))
		} else {
			w := WindowsOf(r)
			ends = min(ends, w.Begins(w.Key(at)+1))
		}
	}
	return ends
}
