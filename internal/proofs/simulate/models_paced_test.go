package simulate_test

import (
	"strconv"

	"github.com/cric-talk/guards/internal/policy"
)

// A slidingModel counts the actions of each period. The previous period weighs as
// much as the window still covers of it.
type slidingModel struct {
	prefix string
	window int64
	counts map[int64]int64
}

// early is how long before its end a period is over, if a clock ahead has begun
// the next one: 2 s for the clock, and 5 s for an update under way.
const early = 7_000

func (m *slidingModel) at(now int64) int64 {
	next := now/m.window + 1
	if next*m.window-now <= early && m.counts[next] > 0 {
		return next * m.window
	}
	return now
}

func (m *slidingModel) used(now int64, _ policy.Rate, _ bool) int64 {
	now = m.at(now)
	k := now / m.window
	covered := m.window - now%m.window
	return m.counts[k] + m.counts[k-1]*covered/m.window
}

func (m *slidingModel) fits(now, n int64, r policy.Rate, strict bool) bool {
	return m.used(now, r, strict)+n <= r.Limit
}

func (m *slidingModel) resets(now int64, _ policy.Rate, _ bool) int64 {
	k := m.at(now) / m.window
	switch {
	case m.counts[k] > 0:
		return (k + 2) * m.window
	case m.counts[k-1] > 0:
		return (k + 1) * m.window
	}
	return now
}

func (m *slidingModel) count(now, n int64, _ policy.Rate) { m.counts[now/m.window] += n }

func (m *slidingModel) holds(now, at, n int64, _ bool) bool {
	k := at / m.window
	return k >= now/m.window-1 && m.counts[k] >= n
}

func (m *slidingModel) back(_, at, n int64) { m.counts[at/m.window] -= n }

func (m *slidingModel) counter(k int64) string { return m.prefix + "c" + strconv.FormatInt(k, 10) }

func (m *slidingModel) counted(at int64, _ policy.Rate, before, after policy.State) int64 {
	name := m.counter(at / m.window)
	return after[name] - before[name]
}

func (m *slidingModel) same(s policy.State) bool {
	for k, n := range m.counts {
		if v, ok := s[m.counter(k)]; ok && v != n {
			return false
		}
	}
	return true
}

// A bucketModel is full again at tat. Each action makes that one interval later.
// If the interval changes, the actions used at the last action stay used, and
// come back at the new pace from then on.
type bucketModel struct {
	prefix string
	tat    int64 // when it is full
	every  int64 // the interval of the last action
	last   int64 // when the last action counted
	since  int64 // when it was last full
	pace   pace
	broken bool // more actions than the pace allows
}

func interval(r policy.Rate) int64 { return r.Window.Milliseconds() / r.Limit }

// full returns when the bucket is full at the pace of r.
func (m *bucketModel) full(r policy.Rate) int64 {
	if m.every == interval(r) || m.every == 0 {
		return m.tat
	}
	owed := max(0, m.tat-m.last) * interval(r)
	return m.last + (owed+m.every-1)/m.every
}

func (m *bucketModel) at(now int64) int64 { return max(now, m.since) }

// behind returns how long it takes at the pace of r until the bucket is full.
func (m *bucketModel) behind(now int64, r policy.Rate) int64 {
	if m.tat <= now {
		return 0
	}
	return max(0, m.full(r)-now)
}

func (m *bucketModel) used(now int64, r policy.Rate, _ bool) int64 {
	return (m.behind(now, r) + interval(r) - 1) / interval(r)
}

func (m *bucketModel) fits(now, n int64, r policy.Rate, _ bool) bool {
	return m.behind(now, r) <= (r.Burst-n)*interval(r)
}

func (m *bucketModel) resets(now int64, r policy.Rate, _ bool) int64 {
	return now + min(m.behind(now, r), max(0, m.tat-now))
}

func (m *bucketModel) count(now, n int64, r policy.Rate) {
	full := m.full(r)
	switch {
	case m.tat <= now:
		m.tat, m.since = now, now
	case m.every != interval(r) && full <= now:
		m.tat, m.since = now, now
	case m.every != interval(r):
		m.tat = full
	}
	m.tat += n * interval(r)
	m.every, m.last = interval(r), now
	m.broken = !m.pace.take(max(now, m.since), n, interval(r), r.Burst)
}

func (m *bucketModel) holds(_, at, n int64, _ bool) bool {
	return m.since <= at && m.tat-n*m.every >= m.since
}

func (m *bucketModel) back(now, at, n int64) {
	m.tat -= n * m.every
	m.pace.back(now, at, n)
}

func (m *bucketModel) counted(at int64, r policy.Rate, _, after policy.State) int64 {
	from := at
	if m.tat > at {
		from = max(at, m.full(r))
	}
	cost := after[m.prefix+"tat"] - from
	if m.every == interval(r) && m.tat > at {
		cost = after[m.prefix+"tat"] - m.tat
	}
	if cost%interval(r) != 0 {
		return -1
	}
	return cost / interval(r)
}

func (m *bucketModel) same(s policy.State) bool {
	return s[m.prefix+"tat"] == m.tat && s[m.prefix+"every"] == m.every &&
		s[m.prefix+"since"] == m.since && s[m.prefix+"asof"] == m.last
}

// A reservoirModel knows the latest window with places, and how many places that
// window has given.
type reservoirModel struct {
	prefix string
	window int64
	key    int64
	given  int64
	from   int64 // when the latest window with places began, by the limit that gave the first of them
}

func (m *reservoirModel) at(now int64) int64 { return now }

// place returns the start of the window of the next place.
func (m *reservoirModel) place(now int64, r policy.Rate) int64 {
	switch k := now / m.window; {
	case m.key < k || m.key == k && m.given == 0:
		return k * m.window
	case m.given >= r.Limit:
		return (m.key + 1) * m.window
	}
	return m.key * m.window
}

func (m *reservoirModel) used(now int64, r policy.Rate, _ bool) int64 {
	switch k := now / m.window; {
	case m.key > k:
		return r.Limit
	case m.key == k:
		return m.given
	}
	return 0
}

func (m *reservoirModel) fits(now, _ int64, r policy.Rate, _ bool) bool {
	return m.place(now, r) <= now+r.Ahead.Milliseconds()
}

func (m *reservoirModel) resets(now int64, r policy.Rate, _ bool) int64 {
	if m.used(now, r, true) == 0 {
		return now
	}
	return (m.key + 1) * m.window
}

func (m *reservoirModel) count(now, _ int64, r policy.Rate) {
	if k := m.place(now, r) / m.window; k != m.key {
		m.key, m.given, m.from = k, 0, k*m.window
	}
	m.given++
}

func (m *reservoirModel) holds(_, _, _ int64, _ bool) bool { return false }

func (m *reservoirModel) back(_, _, _ int64) {}

func (m *reservoirModel) counted(int64, policy.Rate, policy.State, policy.State) int64 { return 1 }

func (m *reservoirModel) same(s policy.State) bool {
	return s[m.prefix+"t"] == m.from*1_000_000+m.given
}

// waiting returns the places given in later windows up to the one at place.
func (m *reservoirModel) waiting(now, place int64, r policy.Rate) int64 {
	given := r.Limit
	if place/m.window >= m.key {
		given = min(m.given, r.Limit)
	}
	return (place/m.window-now/m.window-1)*r.Limit + given
}
