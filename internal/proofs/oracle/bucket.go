package oracle

import (
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// A bucket is full again at tat. Each action makes that one interval later.
// If the interval changes, the actions used at the last action stay used, and
// come back at the new pace from then on.
type bucket struct {
	prefix string
	tat    int64 // when it is full
	every  int64 // the interval of the last action
	last   int64 // when the last action counted
	since  int64 // when it was last full
	pace   pace
	broken bool // more actions than the pace allows
}

// full returns when the bucket is full at the pace of r.
func (m *bucket) full(r policy.Rate) int64 {
	if m.every == Interval(r) || m.every == 0 {
		return m.tat
	}
	owed := max(0, m.tat-m.last) * Interval(r)
	return m.last + (owed+m.every-1)/m.every
}

// An action on a clock behind counts when the clock ahead took from the full bucket.
func (m *bucket) At(now int64) int64 { return max(now, m.since) }

// behind returns how long it takes at the pace of r until the bucket is full.
func (m *bucket) behind(now int64, r policy.Rate) int64 {
	if m.tat <= now {
		return 0
	}
	return max(0, m.full(r)-now)
}

func (m *bucket) Used(now int64, r policy.Rate, _ bool) int64 {
	return (m.behind(now, r) + Interval(r) - 1) / Interval(r)
}

func (m *bucket) Fits(now, n int64, r policy.Rate, _ bool) bool {
	return m.behind(now, r) <= (r.Burst-n)*Interval(r)
}

func (m *bucket) Resets(now int64, r policy.Rate, _ bool) int64 {
	return now + min(m.behind(now, r), max(0, m.tat-now))
}

func (m *bucket) Count(now, n int64, r policy.Rate) {
	full := m.full(r)
	switch {
	case m.tat <= now:
		m.tat, m.since = now, now
	case m.every != Interval(r) && full <= now:
		m.tat, m.since = now, now
	case m.every != Interval(r):
		m.tat = full
	}
	m.tat += n * Interval(r)
	m.every, m.last = Interval(r), now
	m.broken = !m.pace.take(max(now, m.since), n, Interval(r), r.Burst)
}

func (m *bucket) Holds(_, at, n int64, _ bool) bool {
	return m.since <= at && m.tat-n*m.every >= m.since
}

func (m *bucket) Back(now, at, n int64) {
	m.tat -= n * m.every
	m.pace.back(now, at, n)
}

func (m *bucket) Counted(at int64, r policy.Rate, _, after map[string]int64) int64 {
	from := at
	if m.tat > at {
		from = max(at, m.full(r))
	}
	cost := after[m.prefix+"tat"] - from
	if m.every == Interval(r) && m.tat > at {
		cost = after[m.prefix+"tat"] - m.tat
	}
	if cost%Interval(r) != 0 {
		return -1
	}
	return cost / Interval(r)
}

func (m *bucket) Same(s map[string]int64) bool {
	return s[m.prefix+"tat"] == m.tat && s[m.prefix+"every"] == m.every &&
		s[m.prefix+"since"] == m.since && s[m.prefix+"asof"] == m.last
}

func (m *bucket) String() string {
	return fmt.Sprintf("full at %d since %d, every %d from %d on", m.tat, m.since, m.every, m.last)
}

func (m *bucket) Clone() Model {
	c := *m
	c.pace.taken = slices.Clone(m.pace.taken)
	return &c
}

// The actions in use come back at the new pace.
func (m *bucket) Deployed(int64) Model { return m }
