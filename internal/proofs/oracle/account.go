package oracle

import (
	"fmt"
	"iter"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// An Account is what the models hold of one user: one model for each limit. In a
// group, it has the models of all activities.
type Account struct {
	Names  []string
	Models []Model
}

// NewAccount returns an account without any counts. It panics if a limit has no model.
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
// of a tier or a live limit can be in another order than a's limits.
func (a *Account) Own(t *Terms) iter.Seq2[Model, policy.Rate] {
	return func(yield func(Model, policy.Rate) bool) {
		for _, r := range t.Rates {
			if !yield(a.Models[slices.Index(a.Names, r.Name)], r) {
				return
			}
		}
	}
}

// A Moment is when actions count, in Unix milliseconds.
type Moment struct {
	Came   int64 // when they came or were last renewed, by the clock of that decision; in a log they count from then on
	Counts int64 // in all other limits: when they came, or a later time that a clock ahead has written
}

// in returns when the actions of w count in m.
func (w Moment) in(m Model) int64 {
	if _, ok := m.(*slots); ok {
		return w.Came
	}
	return w.Counts
}

// At returns when an action that comes at now counts. All limits but a log count it at the
// same time. A clock that is more than two minutes ahead moves nothing. Of several limits, one
// can have begun something by the time to which another one moves the action.
func (a *Account) At(t *Terms, now int64) int64 {
	at := now
	for m := range a.Own(t) {
		if later := m.At(now); later-now <= 120_000 {
			at = max(at, later)
		}
	}
	if at == now || !a.Named() {
		return at
	}
	return a.At(t, at)
}

// Moment returns when an action that comes at now counts.
func (a *Account) Moment(t *Terms, now int64) Moment { return Moment{now, a.At(t, now)} }

// Fits reports whether n more actions fit at now.
func (a *Account) Fits(t *Terms, now, n int64, strict bool) bool {
	return n <= t.Most && a.FitsAt(t, a.Moment(t, now), n, strict)
}

// FitsAt is Fits for a known moment.
func (a *Account) FitsAt(t *Terms, w Moment, n int64, strict bool) bool {
	for m, r := range a.Own(t) {
		if !m.Fits(w.in(m), n*Cost(r), r, strict) {
			return false
		}
	}
	return true
}

// Count counts n actions that come at now. It is an error if a bucket then has given more
// than its burst and what came back.
func (a *Account) Count(t *Terms, now, n int64) error { return a.CountAt(t, a.Moment(t, now), n) }

// CountAt is Count for a known moment.
func (a *Account) CountAt(t *Terms, w Moment, n int64) (err error) {
	for m, r := range a.Own(t) {
		m.Count(w.in(m), n*Cost(r), r)
		if b, ok := m.(*bucket); ok && b.broken {
			err = fmt.Errorf("more than the burst and what came back: %+v", b.pace)
		}
	}
	return err
}

// Holds reports whether a limit still counts n actions of the moment w.
func (a *Account) Holds(t *Terms, now int64, w Moment, n int64, strict bool) bool {
	for m, r := range a.Own(t) {
		if m.Holds(max(now, w.Counts), w.in(m), n*Cost(r), strict) {
			return true
		}
	}
	return false
}

// Back gives back n actions in each limit that still counts them. In some cases, the
// item shows whether it gave them back. A log may have used their slots for others
// already, if they are over on a clock ahead. An action of another pace may have filled
// a bucket again that could give nothing back before. Or the item has changed since the
// release began (raced), so that a limit did not count them then. Back returns the limits that
// gave them back.
func (a *Account) Back(t *Terms, now int64, w Moment, n int64, before, after policy.State, raced bool) (gave []policy.Rate) {
	now = max(now, w.Counts)
	for m, r := range a.Own(t) {
		_, keeps := m.(*slots)
		if keeps && !m.Holds(now, w.Came, n*Cost(r), false) && m.Counted(w.Came, r, before, after) == 0 {
			continue
		}
		if b, ok := m.(*bucket); ok && (raced || b.every != Interval(r)) && before.Get(b.prefix+"tat") == after.Get(b.prefix+"tat") {
			continue
		}
		if raced && slices.Contains([]string{"fixed", "sliding", "lockout"}, r.Kind) && m.Counted(w.Counts, r, before, after) == 0 {
			continue
		}
		if m.Holds(now, w.in(m), n*Cost(r), true) {
			m.Back(now, w.in(m), n*Cost(r))
			gave = append(gave, r)
		}
	}
	return gave
}

// Undo gives back n actions of the moment w in each limit that still counts them, if
// nobody else changes them meanwhile.
func (a *Account) Undo(t *Terms, now int64, w Moment, n int64) {
	for m, r := range a.Own(t) {
		if now := max(now, w.Counts); m.Holds(now, w.in(m), n*Cost(r), true) {
			m.Back(now, w.in(m), n*Cost(r))
		}
	}
}

// Counts returns how many actions a write at now has counted, and when they
// count. All limits must count the same number. A write that was planned when a
// clock ahead had begun something counts at that clock's time, even if nothing is
// left of it when the write lands.
func (a *Account) Counts(t *Terms, now int64, before, after policy.State) (n int64, w Moment, err error) {
	moments := []int64{a.At(t, now)}
	for m, r := range a.Own(t) {
		planned, ahead := int64(0), min(r.Window.Milliseconds(), 120_000)
		switch m := m.(type) {
		case *fixed:
			planned = after.Get(m.prefix+"s") / 1_000_000
		case *sliding:
			planned = (now/m.window + 1) * m.window
			for later := planned + m.window; later-now <= early; later += m.window {
				moments = append(moments, later)
			}
		case *bucket:
			planned, ahead = after.Get(m.prefix+"asof"), 120_000
			moments = slices.DeleteFunc(moments, func(at int64) bool { return at != planned }) // the item shows it
		}
		if planned > now && planned-now <= ahead {
			moments = append(moments, planned)
		}
	}
	for _, at := range moments {
		w = Moment{now, at}
		if n, err = a.countedAt(t, w, before, after); n > 0 && err == nil {
			break
		}
	}
	return n, w, err
}

func (a *Account) countedAt(t *Terms, w Moment, before, after policy.State) (int64, error) {
	n, first := int64(-1), ""
	for m, r := range a.Own(t) {
		units := m.Counted(w.in(m), r, before, after)
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
func (a *Account) Same(s policy.State) bool {
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

// Ticket returns the latest place that the reservoir among the limits has given, as an item
// keeps it; 0: there is none.
func (a *Account) Ticket(t *Terms) int64 {
	for m := range a.Own(t) {
		if q, ok := m.(*reservoir); ok {
			return q.ticket()
		}
	}
	return 0
}

// Skip gives all places up to a later ticket, unless its window has passed at now. It reports
// whether it is later.
func (a *Account) Skip(t *Terms, now, ticket int64) bool {
	for m := range a.Own(t) {
		if q, ok := m.(*reservoir); ok {
			return q.skip(now, ticket)
		}
	}
	return false
}

// GiveAll gives all places up to those that an item has, of all limits.
func (a *Account) GiveAll(s policy.State) {
	for _, m := range a.Models {
		if q, ok := m.(*reservoir); ok {
			q.skip(0, s.Get(q.prefix+"t"))
		}
	}
}

// Give counts n actions that come at now. A reservoir counts them in the window of place.
// It returns when they count, and whether they fit.
func (a *Account) Give(t *Terms, now, n, place int64) (w Moment, fits bool) {
	w, fits = a.Moment(t, now), true
	for m, r := range a.Own(t) {
		if q, ok := m.(*reservoir); ok {
			fits = q.give(place, r) && fits
			continue
		}
		fits = fits && m.Fits(w.in(m), n*Cost(r), r, false)
		m.Count(w.in(m), n*Cost(r), r)
	}
	return w, fits
}

// Repace changes the intervals of buckets whose limits in t are slower, as a refusal at now
// does. It reports whether there were any.
func (a *Account) Repace(t *Terms, now int64) (changed bool) {
	at := a.At(t, now)
	for m, r := range a.Own(t) {
		if b, ok := m.(*bucket); ok {
			changed = b.repace(at, r) || changed
		}
	}
	return changed
}

// Repaced returns the account after a refusal at now has recorded its pace, so that the item
// holds after. If the item has changed since the refusal's decision began (raced), the refusal
// was perhaps planned before that: early. Then it left out a bucket that has a faster pace
// since then, and did not know of a window that a clock ahead has begun. The item shows which
// buckets the record changes, and at what time. Nobody else has changed these, because their
// state is a condition of the write.
func (a *Account) Repaced(t *Terms, now int64, after policy.State, raced bool) (repaced *Account, early, ok bool) {
	if repaced = a.Clone(); repaced.Repace(t, now) && repaced.Same(after) {
		return repaced, false, true
	}
	repaced = a.Clone()
	for m, r := range repaced.Own(t) {
		if b, is := m.(*bucket); is && !b.Same(after) {
			at := min(max(now, after.Get(b.prefix+"asof")), a.At(t, now))
			ok = b.repace(at, r) || ok
		}
	}
	return repaced, true, raced && ok && repaced.Same(after)
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

// Counted returns what the item of a window counts. Only a fixed window alone has an item
// for each.
func (a *Account) Counted(window int64) int64 { return a.Models[0].(*fixed).counts[window] }

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
