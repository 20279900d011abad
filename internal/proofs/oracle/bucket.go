package oracle

import (
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// A bucket is full again at tat. Each action makes that one interval later. If the
// interval changes, what is in use at the next decision comes back at the new pace. Until
// then the faster pace counts.
//
// A prepaid limit keeps back as much time as a lease lasts, from the first action of a full
// bucket on. That is part of tat.
type bucket struct {
	prefix string
	tat    int64 // when it is full
	kept   int64 // of the time until tat, what is kept back
	every  int64 // the interval of the last action
	last   int64 // when the last action counted
	since  int64 // when it was last full
	pace   pace
	broken bool // more actions than the pace allows
}

// full returns when the bucket is full at the pace of r, and for its own leases.
func (m *bucket) full(now int64, r policy.Rate) int64 {
	full := m.tat
	if every := Interval(r); m.every != every && m.every != 0 {
		then := m.last
		if every > m.every {
			then = max(now, then, m.since)
		}
		if owed := m.tat - m.kept - then; owed > 0 {
			full = then + (owed*every+m.every-1)/m.every + m.kept
		}
	}
	if m.tat <= now {
		return full
	}
	return full - min(m.kept, lease(r))
}

// lease returns how long a lease of r lasts; 0: r is not prepaid.
func lease(r policy.Rate) int64 {
	if !r.Prepaid {
		return 0
	}
	return r.Ahead.Milliseconds()
}

// idle reports whether the bucket is full at now, at its own pace.
func (m *bucket) idle(now int64, r policy.Rate) bool {
	return m.tat <= now || m.tat-min(m.kept, lease(r)) <= now
}

// An action on a clock behind counts when the clock ahead took from the full bucket.
func (m *bucket) At(now int64) int64 { return max(now, m.since) }

// behind returns how long it takes at the pace of r until the bucket is full.
func (m *bucket) behind(now int64, r policy.Rate) int64 {
	if m.idle(now, r) {
		return 0
	}
	return max(0, m.full(now, r)-now)
}

func (m *bucket) Used(now int64, r policy.Rate, _ bool) int64 {
	return (m.behind(now, r) + Interval(r) - 1) / Interval(r)
}

func (m *bucket) Fits(now, n int64, r policy.Rate, _ bool) bool {
	return m.behind(now, r) <= (r.Burst-n)*Interval(r)
}

func (m *bucket) Resets(now int64, r policy.Rate, _ bool) int64 { return now + m.behind(now, r) }

func (m *bucket) Count(now, n int64, r policy.Rate) {
	from := m.full(now, r)
	if m.idle(now, r) || m.every != Interval(r) && from <= now {
		from, m.since, m.kept = now, now, 0
	}
	m.tat = from + n*Interval(r) + lease(r)
	m.every, m.last, m.kept = Interval(r), now, max(m.kept, lease(r))
	m.broken = !m.pace.take(max(now, m.since), n, Interval(r), r.Burst)
}

// repace changes the interval to a longer one of r, whose limit has refused an action. It
// reports whether there was something to change.
func (m *bucket) repace(now int64, r policy.Rate) bool {
	if m.tat <= now || m.every == 0 || m.every >= Interval(r) {
		return false
	}
	r.Prepaid = false // what is kept back stays
	m.tat, m.every, m.last = m.full(now, r), Interval(r), max(now, m.last, m.since)
	return true
}

func (m *bucket) Holds(_, at, n int64, _ bool) bool {
	return m.since <= at && m.tat-n*m.every >= m.since
}

func (m *bucket) Back(now, at, n int64) {
	m.tat -= n * m.every
	m.pace.back(now, at, n)
}

func (m *bucket) Counted(at int64, r policy.Rate, _, after policy.State) int64 {
	from := at
	switch {
	case m.idle(at, r):
	case m.every == Interval(r):
		from = m.full(at, r)
	default:
		from = max(at, m.full(at, r))
	}
	cost := after.Get(m.prefix+"tat") - from - lease(r)
	if cost%Interval(r) != 0 {
		return -1
	}
	return cost / Interval(r)
}

func (m *bucket) Same(s policy.State) bool {
	const million = 1_000_000
	kept, lent := int64(0), s.Get(m.prefix+"lent")
	if lent/million == m.since {
		kept = lent % million
	}
	return s.Get(m.prefix+"tat") == m.tat && s.Get(m.prefix+"every") == m.every &&
		s.Get(m.prefix+"since") == m.since && s.Get(m.prefix+"asof") == m.last && kept == m.kept
}

func (m *bucket) String() string {
	return fmt.Sprintf("full at %d since %d, every %d from %d on, %d kept back", m.tat, m.since, m.every, m.last, m.kept)
}

func (m *bucket) Clone() Model {
	c := *m
	c.pace.taken = slices.Clone(m.pace.taken)
	return &c
}

// The actions in use come back at the new pace.
func (m *bucket) Deployed(int64) Model { return m }
