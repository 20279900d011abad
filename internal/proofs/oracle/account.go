package oracle

import (
	"fmt"
	"iter"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// An Account is what the models hold of one user: one model for each limit. In a
// group it has those of all activities.
type Account struct {
	Names  []string
	Models []Model
}

// NewAccount returns an account in which nothing counts. It panics if a limit has no model.
func NewAccount(limits []*Terms) *Account {
	a := &Account{}
	for _, t := range limits {
		for _, r := range t.Rates {
			if slices.Contains(a.Names, r.Name) {
				continue
			}
			m, err := New(r)
			if err != nil {
				panic(err) // TestEachKindHasAModel
			}
			a.Names, a.Models = append(a.Names, r.Name), append(a.Models, m)
		}
	}
	return a
}

// Named reports whether the limits have names, and one item for all times.
func (a *Account) Named() bool { return a.Names[0] != "" }

// Own returns the model of each limit of t, with that limit, in the order of t. The limits
// of a tier or a live limit can be in another order than those of a.
func (a *Account) Own(t *Terms) iter.Seq2[Model, policy.Rate] {
	return func(yield func(Model, policy.Rate) bool) {
		for _, r := range t.Rates {
			if !yield(a.Models[slices.Index(a.Names, r.Name)], r) {
				return
			}
		}
	}
}

// At returns when an action that comes at now counts. Several limits count it at
// the same time.
func (a *Account) At(t *Terms, now int64) int64 {
	at := now
	for m := range a.Own(t) {
		if later := m.At(now); later-now <= 120_000 || !a.Named() {
			at = max(at, later)
		}
	}
	return at
}

// Fits reports whether n more actions fit at now.
func (a *Account) Fits(t *Terms, now, n int64, strict bool) bool {
	if n > t.Most {
		return false
	}
	return a.FitsAt(t, a.Moment(t, now), n, strict)
}

// FitsAt is Fits for a time that counts.
func (a *Account) FitsAt(t *Terms, at, n int64, strict bool) bool {
	for m, r := range a.Own(t) {
		if !m.Fits(at, n*Cost(r), r, strict) {
			return false
		}
	}
	return true
}

// Moment returns the time under which an action at now counts. A bucket alone
// Counts by the clock at hand; only its receipt is later.
func (a *Account) Moment(t *Terms, now int64) int64 {
	if _, ok := a.Models[0].(*bucket); ok && !a.Named() {
		return now
	}
	return a.At(t, now)
}

// Count counts n actions of the moment at. It is an error if a bucket then has given more
// than its burst and what came back.
func (a *Account) Count(t *Terms, at, n int64) (err error) {
	for m, r := range a.Own(t) {
		m.Count(at, n*Cost(r), r)
		if b, ok := m.(*bucket); ok && b.broken {
			err = fmt.Errorf("more than the burst and what came back: %+v", b.pace)
		}
	}
	return err
}

// Holds reports whether a limit still counts n actions of the moment at.
func (a *Account) Holds(t *Terms, now, at, n int64, strict bool) bool {
	for m, r := range a.Own(t) {
		if m.Holds(now, at, n*Cost(r), strict) {
			return true
		}
	}
	return false
}

// Back gives back n actions in each limit in which they still count. A log may
// have used their slots for others already, if a clock ahead says that they are
// over; then the item shows whether it gave them back. So it does if an action of
// another pace has filled a bucket again, from which nothing could be given back before,
// and if the item has changed since the release began (raced).
func (a *Account) Back(t *Terms, now, at, n int64, before, after map[string]int64, raced bool) {
	for m, r := range a.Own(t) {
		_, keeps := m.(*slots)
		if keeps && !m.Holds(now, at, n*Cost(r), false) && m.Counted(at, r, before, after) == 0 {
			continue
		}
		if b, ok := m.(*bucket); ok && (raced || b.every != Interval(r)) && before[b.prefix+"tat"] == after[b.prefix+"tat"] {
			continue
		}
		if m.Holds(now, at, n*Cost(r), true) {
			m.Back(now, at, n*Cost(r))
		}
	}
}

// Counts returns how many actions a write at now has counted, and under which
// time. All limits must count the same number. A write that was planned when a
// clock ahead had begun something counts at that clock's time, even if nothing is
// left of it when the write lands.
func (a *Account) Counts(t *Terms, now int64, before, after map[string]int64) (n, at int64, err error) {
	moments := []int64{a.Moment(t, now)}
	for m, r := range a.Own(t) {
		planned := int64(0)
		switch m := m.(type) {
		case *sliding:
			planned = (now/m.window + 1) * m.window
		case *bucket:
			planned = after[m.prefix+"asof"]
			moments = slices.DeleteFunc(moments, func(at int64) bool { return at != planned }) // the item shows it
		}
		if window := r.Window.Milliseconds(); planned > now && planned-now <= min(window, 120_000) {
			moments = append(moments, planned)
		}
	}
	for _, at = range moments {
		if n, err = a.countedAt(t, at, before, after); n > 0 && err == nil {
			break
		}
	}
	return n, at, err
}

func (a *Account) countedAt(t *Terms, at int64, before, after map[string]int64) (int64, error) {
	n, first := int64(-1), ""
	for m, r := range a.Own(t) {
		units := m.Counted(at, r, before, after)
		got := units / Cost(r)
		switch {
		case units%Cost(r) != 0:
			return 0, fmt.Errorf("the limit %s counts %d, and an action costs %d", r.Name, units, Cost(r))
		case n >= 0 && got != n:
			return 0, fmt.Errorf("the limit %s counts %d, and the limit %s counts %d", first, n, r.Name, got)
		}
		n, first = got, r.Name
	}
	return n, nil
}

// Same reports whether the attributes of the item hold what the models hold.
func (a *Account) Same(s map[string]int64) bool {
	for _, m := range a.Models {
		if !m.Same(s) {
			return false
		}
	}
	return true
}

// Wait returns how many milliseconds a caller at now has to wait until n actions fit, if
// nobody else comes; -1: they never fit.
func (a *Account) Wait(t *Terms, now, n int64, strict bool) int64 {
	if a.Fits(t, now, n, strict) {
		return 0
	}
	a = a.Clone()
	a.Repace(t, now) // the refusal does
	if m, ok := a.Models[0].(*fixed); ok && !a.Named() {
		m.shown = m.windows.Key(now) // an item shows nobody who has come in the next window already
		defer func() { m.shown = 0 }()
	}
	var refused int64 // the longest time that is known to be too short
	enough := 4*t.Longest() + 400_000
	if !a.Fits(t, now+enough, n, strict) {
		return -1
	}
	for enough-refused > 1 {
		if middle := (refused + enough) / 2; a.Fits(t, now+middle, n, strict) {
			enough = middle
		} else {
			refused = middle
		}
	}
	return enough
}

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
// at place; 0: there is none.
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

// Repace changes the intervals of buckets whose limits in t are slower, as a refusal at now
// does. It reports whether there were any.
func (a *Account) Repace(t *Terms, now int64) (changed bool) {
	at := a.Moment(t, now)
	for m, r := range a.Own(t) {
		if b, ok := m.(*bucket); ok {
			changed = b.repace(at, r) || changed
		}
	}
	return changed
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

// Clear notes that the item of a window was deleted. Only a fixed window alone has an item
// for each.
func (a *Account) Clear(window int64) { delete(a.Models[0].(*fixed).counts, window) }

// String describes what the models hold, for failures.
func (a *Account) String() string { return fmt.Sprint(a.Models) }

// Clone returns a copy that can go its own way.
func (a *Account) Clone() *Account {
	c := &Account{Names: a.Names, Models: make([]Model, len(a.Models))}
	for i, m := range a.Models {
		c.Models[i] = m.Clone()
	}
	return c
}
