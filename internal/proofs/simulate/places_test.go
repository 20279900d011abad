package simulate_test

import (
	"github.com/cric-talk/guards/internal/ratelimit"
)

// late reports whether the place that o's id has by r is over, or is one that o's limit
// does not give. Then o is a late job, which takes a new place.
func (o *op) late(r *record) bool {
	queue, ok := o.queue()
	return ok && r.place != 0 && (r.place%queue != 0 || r.place/queue < o.now/queue)
}

// queue returns the window of the reservoir among o's limits, in milliseconds.
func (o *op) queue() (window int64, ok bool) {
	for _, r := range o.terms.numbers.Rates {
		if r.Kind == "reservoir" {
			return r.Window.Milliseconds(), true
		}
	}
	return 0, false
}

// moves reports whether a write gives a late job a new place instead of the one of r.
func (o *op) moves(w ratelimit.Write, r *record) bool {
	if w.Drop.Set == "" {
		return false
	}
	if !o.late(r) {
		o.in.sim.wrong("%s gives up the place %d, which is not over at %d", o.name, r.place, o.now)
	}
	o.in.sim.stats[newPlaces]++
	return true
}

// placed returns the place that an answer from memory tells: a later one, or the current
// window; 0: the limit gives none.
func (o *op) placed(d ratelimit.Decision) int64 {
	queue, ok := o.queue()
	if !ok {
		return 0
	}
	return max(d.ReadyAt, o.now/queue*queue)
}
