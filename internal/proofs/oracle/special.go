package oracle

import "github.com/cric-talk/guards/internal/policy"

// Slots returns the log among the limits; nil: there is none.
func (a *Account) Slots(t *Terms) (Model, policy.Rate) {
	for m, r := range a.Own(t) {
		if r.Kind == "log" {
			return m, r
		}
	}
	return nil, policy.Rate{}
}

// Move changes the time of n actions of the log.
func (a *Account) Move(t *Terms, from, to, n int64) {
	m, r := a.Slots(t)
	m.(*slots).move(from, to, n*Cost(r))
}

// Place returns the place that the reservoir among the limits gives next; 0: there is none.
func (a *Account) Place(t *Terms, at int64) int64 {
	for m, r := range a.Own(t) {
		if q, ok := m.(*reservoir); ok {
			return q.place(at, r)
		}
	}
	return 0
}

// Waiting returns the places that the reservoir has given in later windows, up to the one
// at place.
func (a *Account) Waiting(t *Terms, now, place int64) int64 {
	for m, r := range a.Own(t) {
		if q, ok := m.(*reservoir); ok {
			return q.waiting(now, place, r)
		}
	}
	return 0
}

// Give counts n actions of the moment at, that of a reservoir in the window of place. It
// reports whether they fit.
func (a *Account) Give(t *Terms, at, n, place int64) bool {
	fits := true
	for m, r := range a.Own(t) {
		if q, ok := m.(*reservoir); ok {
			fits = q.give(place, r) && fits
			continue
		}
		fits = fits && m.Fits(at, n*Cost(r), r, false)
		m.Count(at, n*Cost(r), r)
	}
	return fits
}

// Repaces reports whether a bucket of t last counted at another pace.
func (a *Account) Repaces(t *Terms) bool {
	for m, r := range a.Own(t) {
		if b, ok := m.(*bucket); ok && b.every != Interval(r) {
			return true
		}
	}
	return false
}

// Ahead reports whether a clock ahead of now has begun the period of a sliding limit.
// The period before weighs less in it.
func (a *Account) Ahead(t *Terms, now int64) bool {
	for m, r := range a.Own(t) {
		if r.Kind == "sliding" && m.At(now) > now {
			return true
		}
	}
	return false
}
