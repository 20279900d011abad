package simulate_test

import (
	"maps"
	"math"
	"slices"
)

// seen is what an instance knows of a user's item: what the store last showed it,
// and what it has admitted alone since. An outage starts from there.
type seen struct {
	*account

	order int   // how many writes the store had performed
	asked int64 // by its own clock: when the attempt began that showed this
}

// learn notes what an answer of a decision has shown its instance; nil: there was none.
func (in *instance) learn(o *op, a *landing) {
	if a == nil {
		return
	}
	name := in.knows(o)
	was := in.seen[name]
	if was != nil && a.clock < was.asked && was.asked <= in.millis() {
		return
	}
	in.seen[name] = &seen{account: a.snapshot, order: a.order, asked: a.clock}
}

// knows returns the item that a decision is about.
func (in *instance) knows(o *op) counter {
	now := o.now
	if o.kind.byReceipt() {
		now = o.releasedAt()
	}
	window, _ := o.terms.Item(now)
	return counter{o.request.UserID, window}
}

// fitsSeen counts n actions that the instance admits alone in what it has seen. It
// reports whether they fit there.
func (in *instance) fitsSeen(o *op, n, place int64) bool {
	s := in.seen[in.knows(o)]
	if s == nil {
		return true
	}
	s.asked = math.MinInt64 // whatever the store shows next is newer
	fits := true
	at := s.moment(o.terms, o.now)
	for m, r := range s.own(o.terms) {
		if q, ok := m.(*reservoirModel); ok {
			window := max(place, o.now) / q.window
			if window > q.key {
				q.key, q.given = window, 0
			}
			fits = fits && window == q.key && q.given < r.Limit
			q.given++
			continue
		}
		fits = fits && m.fits(at, n*cost(r), r, false)
		m.count(at, n*cost(r), r)
	}
	return fits
}

// clone returns a copy that can go its own way.
func (a *account) clone() *account {
	c := &account{names: a.names, models: make([]model, len(a.models))}
	for i, m := range a.models {
		c.models[i] = m.clone()
	}
	return c
}

func (m *fixedModel) clone() model {
	c := *m
	c.counts = maps.Clone(m.counts)
	return &c
}

func (m *logModel) clone() model {
	c := *m
	c.times = slices.Clone(m.times)
	return &c
}

func (m *slidingModel) clone() model {
	c := *m
	c.counts = maps.Clone(m.counts)
	return &c
}

func (m *bucketModel) clone() model {
	c := *m
	c.pace.taken = slices.Clone(m.pace.taken)
	return &c
}

func (m *reservoirModel) clone() model {
	c := *m
	return &c
}
