package oracle

import (
	"fmt"
	"math"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// A lockout keeps the attempts of one series. The series locks as soon as the limit is
// reached, and as long as that many attempts count.
type lockout struct {
	prefix   string
	attempts []int64 // when the attempts of the series came, in the order of the store's updates; also attempts given back
	back     int64   // how many of them were given back
	before   int64   // the latest attempt of all series before
	locks    int64   // of the series before, if they are not forgotten
}

func (m *lockout) At(now int64) int64 { return now }

// n returns how many attempts of the series count.
func (m *lockout) n() int64 { return int64(len(m.attempts)) - m.back }

// first and last return when the series began, and when its last attempt was; 0: there was none.
// A clock that is behind moves the first one back, and never the last one.
func (m *lockout) first() int64 {
	if len(m.attempts) == 0 {
		return 0
	}
	return slices.Min(m.attempts)
}

func (m *lockout) last() int64 {
	if len(m.attempts) == 0 {
		return 0
	}
	return max(m.before, slices.Max(m.attempts))
}

// lock returns how long the lock of r after so many others lasts: each one twice as long
// as the one before.
func lock(r policy.Rate, locks int64) int64 {
	longest := r.MaxLock.Milliseconds()
	if locks >= 35 { // a millisecond, doubled so often, is longer than any lock
		return longest
	}
	return min(r.Lock.Milliseconds()<<locks, longest)
}

// ends returns when the series is over, by the limit r, and when its locks are forgotten.
func (m *lockout) ends(r policy.Rate) (over, forgotten int64) {
	longest := r.MaxLock.Milliseconds()
	switch {
	case len(m.attempts) == 0:
		return math.MinInt64, math.MinInt64
	case m.n() >= r.Limit:
		over = m.last() + lock(r, m.locks)
		return over, over + longest
	}
	over = m.first() + r.Window.Milliseconds()
	return over, max(over, m.last()+longest)
}

// begins reports whether an attempt at now begins another series.
func (m *lockout) begins(now int64, r policy.Rate) bool {
	over, _ := m.ends(r)
	return now >= over
}

// locked reports whether nothing is allowed at now.
func (m *lockout) locked(now int64, r policy.Rate) bool {
	return m.n() >= r.Limit && !m.begins(now, r)
}

func (m *lockout) Used(now int64, r policy.Rate, _ bool) int64 {
	if m.begins(now, r) {
		return 0
	}
	return m.n()
}

func (m *lockout) Fits(now, n int64, r policy.Rate, strict bool) bool {
	return m.Used(now, r, strict)+n <= r.Limit
}

func (m *lockout) Resets(now int64, r policy.Rate, strict bool) int64 {
	if m.Used(now, r, strict) == 0 {
		return now
	}
	over, _ := m.ends(r)
	return over
}

func (m *lockout) Count(now, n int64, r policy.Rate) {
	if m.begins(now, r) {
		locks := m.locks
		if m.n() >= r.Limit {
			locks++
		}
		if _, forgotten := m.ends(r); now >= forgotten {
			locks = 0
		}
		*m = lockout{prefix: m.prefix, before: m.last(), locks: locks}
	}
	for range n {
		m.attempts = append(m.attempts, now)
	}
}

// The time of the receipt lies in the series. Whether it still locks does not matter.
func (m *lockout) Holds(_, at, n int64, _ bool) bool {
	return len(m.attempts) > 0 && m.first() <= at && at <= m.last() && n <= m.n()
}

func (m *lockout) Back(_, _, n int64) { m.back += n }

func (m *lockout) Counted(_ int64, _ policy.Rate, before, after policy.State) int64 {
	n := after.Get(m.prefix + "n")
	if after.Get(m.prefix+"opened") > before.Get(m.prefix+"opened") { // another series
		return n
	}
	return n - before.Get(m.prefix+"n")
}

func (m *lockout) Same(s policy.State) bool {
	want := map[string]int64{"n": m.n(), "opened": m.first(), "latest": m.last(), "strikes": m.locks}
	for name, v := range want {
		if s.Get(m.prefix+name) != v {
			return false
		}
	}
	return true
}

func (m *lockout) String() string {
	return fmt.Sprintf("%d attempts from %d to %d, after %d locks", m.n(), m.first(), m.last(), m.locks)
}

func (m *lockout) Clone() Model {
	c := *m
	c.attempts = slices.Clone(m.attempts)
	return &c
}

// The series goes on, and what it means goes by the new text.
func (m *lockout) Deployed(int64) Model { return m }

// Unlock ends the series of each lockout of t, as a release with clear does. It reports whether
// there is one.
func (a *Account) Unlock(t *Terms) (has bool) {
	for m := range a.Own(t) {
		if l, ok := m.(*lockout); ok {
			*l, has = lockout{prefix: l.prefix}, true
		}
	}
	return has
}

// Begins reports whether an action of the moment w begins another series of a lockout of t, while
// the one before still counts for somebody.
func (a *Account) Begins(t *Terms, w Moment) bool {
	for m, r := range a.Own(t) {
		if l, ok := m.(*lockout); ok && len(l.attempts) > 0 && l.begins(w.in(m), r) {
			return true
		}
	}
	return false
}

// Locked reports whether a lockout of t is locked for an action of the moment w.
func (a *Account) Locked(t *Terms, w Moment) bool {
	for m, r := range a.Own(t) {
		if l, ok := m.(*lockout); ok && l.locked(w.in(m), r) {
			return true
		}
	}
	return false
}

// Over reports whether nothing that m holds matters at now, by the limit r: nothing counts, and
// the locks of a lockout are forgotten.
func Over(m Model, now int64, r policy.Rate) bool {
	if l, ok := m.(*lockout); ok {
		_, forgotten := l.ends(r)
		return now >= forgotten
	}
	return m.Used(now, r, true) == 0
}
